"""The same GPT and the same call paths with small tensors, for runs of ten thousand steps."""

from __future__ import annotations

from collections.abc import Callable

import torch

from workloads import gpt


def make_step() -> Callable[[], None]:
    torch.set_num_threads(1)
    return gpt.make_step(batch=2, context=16, width=32)
