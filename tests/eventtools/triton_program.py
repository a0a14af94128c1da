"""Kernels whose accesses are known by arithmetic, for Triton's interpreter."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + (at + inner)[None, :])  # the line of a
        y = tl.load(b + (at + inner)[:, None] * n + columns[None, :])  # the line of b
        sums += tl.dot(x, y)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)  # the line of c


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + columns, mask=columns < n, other=-float("inf"))  # the line of x
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + columns, values / tl.sum(values, axis=0), mask=columns < n)


@triton.jit
def histogram(counts, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + bins, 1, mask=at < n)  # the line of counts


def main() -> None:
    a, b, c = torch.randn(128, 96), torch.randn(96, 64), torch.empty(128, 64)
    matmul[(4, 2)](a, b, c, 64, 96, 32, 32, 32)  # the launch
    assert torch.allclose(c, a @ b, atol=1e-3)
    x, out = torch.randn(20, 500), torch.empty(20, 500)
    softmax[(20,)](out, x, 500, 512)
    assert torch.allclose(out, torch.softmax(x, -1), atol=1e-5)
    data, counts = torch.randint(0, 8, (1000,), dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    histogram[(4,)](counts, data, 1000, 256)
    assert counts.sum().item() == 1000


main()
