"""The GPT of `leadline demo` at 4 layers of 256 on one thread: some 4,000 operators of ordinary size a step of about
100 ms, with less noise than two threads have.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from workloads import gpt


def make_step() -> Callable[[], None]:
    torch.set_num_threads(1)
    return gpt.make_step(batch=4, context=64, width=256)
