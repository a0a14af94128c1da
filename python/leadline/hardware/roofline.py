"""Floating-point operations and bytes of an operator from its shapes, and the least time they can take.

`roofline_ns` is a lower bound: max(flops / peak, bytes / bandwidth) (Williams, Waterman, Patterson 2009). Predictions
use ratios of two bounds, so constant inefficiencies cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leadline._dataclass import dataclass
from leadline.hardware.gpus import Gpu
from leadline.hardware.precision import PRECISION_BYTES


@dataclass(frozen=True)
class Work:
    """What an operator must do at least. `elements` counts inputs plus outputs, each moved once."""

    flops: float
    elements: float


def work_of(operator: str, shapes: Sequence[Any]) -> Work | None:
    """Work of one matrix, convolution or attention operator; None when the shapes do not tell.

    Shapes are the operator's inputs in order, as the trace has them ("Input Dims").
    """
    dims = [list(shape) for shape in shapes if isinstance(shape, (list, tuple))]
    name = operator.rsplit("::", 1)[-1]
    try:
        if name in ("mm", "addmm", "_scaled_mm"):
            left, right = (dims[1], dims[2]) if name == "addmm" else (dims[0], dims[1])
            return _matmul([1, *left], [1, *right])
        if name in ("bmm", "baddbmm"):
            left, right = (dims[1], dims[2]) if name == "baddbmm" else (dims[0], dims[1])
            return _matmul(left, right)
        if name == "linear":
            rows = math.prod(dims[0][:-1])
            return _matmul([1, rows, dims[0][-1]], [1, dims[1][1], dims[1][0]])
        if name == "matmul" and len(dims[0]) >= 2 and len(dims[1]) >= 2:
            left = [math.prod(dims[0][:-2]), dims[0][-2], dims[0][-1]]
            return _matmul(left, [left[0], dims[1][-2], dims[1][-1]])
        if name in ("conv2d", "convolution", "_convolution", "cudnn_convolution", "conv1d", "conv3d"):
            return None  # the output size needs stride and padding; see convolution_work
        if "attention" in name and len(dims[0]) == 4:
            left, right = dims[0], dims[1]
            if name.startswith(("_efficient_attention", "_flash_attention")):  # rows in front of heads
                left, right = ([axes[0], axes[2], axes[1], axes[3]] for axes in (left, right))
            return _attention(left, right, backward="backward" in name)
    except (IndexError, TypeError):
        return None
    return None


def convolution_work(input_shape: Sequence[int], weight_shape: Sequence[int], output_shape: Sequence[int]) -> Work:
    """Forward work; each of the two backward halves (data, weight) has the same flops."""
    taps = math.prod(weight_shape[1:])
    flops = 2.0 * math.prod(output_shape) * taps
    return Work(flops, math.prod(input_shape) + math.prod(weight_shape) + math.prod(output_shape))


def convolution_output(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """Output shape of a convolution (PyTorch, Conv2d documentation)."""
    spatial = len(input_shape) - 2

    def per_axis(values: Sequence[int]) -> list[int]:
        return list(values) * spatial if len(values) == 1 else list(values)

    strides, pads, dilations = per_axis(stride), per_axis(padding), per_axis(dilation)
    out = [
        (size + 2 * pad - dil * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, dil in zip(
            input_shape[2:], weight_shape[2:], strides, pads, dilations, strict=True
        )
    ]
    return [input_shape[0], weight_shape[0], *out]


def roofline_ns(work: Work, precision: str, gpu: Gpu) -> float | None:
    """Least time on this GPU; None when it has no unit for the precision."""
    peak = gpu.peak_flops(precision)
    if peak is None:
        return None
    moved = work.elements * PRECISION_BYTES[precision]
    return max(work.flops / peak, moved / gpu.memory_bytes_s) * 1e9


def _matmul(left: Sequence[int], right: Sequence[int]) -> Work:
    batch, m, k = left
    n = right[2]
    return Work(2.0 * batch * m * n * k, float(batch * (m * k + k * n + m * n)))


def _attention(query: Sequence[int], key: Sequence[int], *, backward: bool) -> Work:
    batch, heads, rows, width = query
    flops = 4.0 * batch * heads * rows * key[2] * width
    elements = 2.0 * math.prod(query) + 2.0 * math.prod(key)
    return Work(flops * 2.5, elements * 2) if backward else Work(flops, elements)
