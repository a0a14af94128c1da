"""A matrix product written for Triton by hand, whose loop is known by its lines."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    import torch


@triton.jit  # Triton looks up the names of annotations, and takes its own only
def matmul_kernel(a, b, c, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, STEP)
    left = a + row[:, None] * n + inner[None, :]
    right = b + inner[:, None] * n + column[None, :]
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(0, n, STEP):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += STEP
        right += STEP * n
    tl.store(c + row[:, None] * n + column[None, :], sums.to(tl.float16))


def _loop() -> tuple[int, int]:
    """Lines of the loop, from its head to the last of its body."""
    lines, first = inspect.getsourcelines(matmul_kernel.fn)
    head = next(at for at, line in enumerate(lines) if line.lstrip().startswith("for "))
    return first + head, first + head + 3


LOOP = _loop()


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of square matrices whose sides are multiples of 128."""
    n = a.shape[0]
    c = a.new_empty((n, n))
    matmul_kernel[(n // 128, n // 128)](a, b, c, n, BLOCK=128, STEP=64, num_warps=8)
    return c
