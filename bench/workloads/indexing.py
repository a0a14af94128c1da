"""A penalty on single elements of a tensor, one by one, as generation loops do: operators inside of operators, with
numbers and no tensors as inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch

_ROWS, _ELEMENTS = 4, 50


def make_step() -> Callable[[], None]:
    """One round over 200 elements, 5,200 operators."""
    scores = torch.randn(_ROWS, 12_000, generator=torch.Generator().manual_seed(0))

    @torch.inference_mode()
    def step() -> None:
        for row in range(_ROWS):
            for element in range(_ELEMENTS):
                if scores[row, element] < 0:
                    scores[row, element] *= 1.0001
                else:
                    scores[row, element] /= 1.0001

    return step
