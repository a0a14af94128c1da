"""Kernels in Triton, compiled by `compile_kernels.py` of this folder without a GPU."""

import triton
import triton.language as tl


@triton.jit
def rounded(value):
    return (value * 256.0).to(tl.float16)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        left = tl.load(a + row[:, None] * k + at + inner[None, :])
        right = tl.load(b + (at + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column[None, :], rounded(total))
