"""Little work in many operators, the worst case for a profiler: 20 Linear(64, 64) layers, batch 8, SGD."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn


def make_step(below: int = 0, layers: int = 20) -> Callable[[], None]:
    """`below`: Python functions that call each other around the step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the tensors are below the size at which torch would use more
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(layers)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(8, 64)
    y = torch.randn(8, 64)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    return functools.reduce(_called_by_another, range(below), step)


def _called_by_another(step: Callable[[], None], _: int) -> Callable[[], None]:
    def another() -> None:
        step()

    return another
