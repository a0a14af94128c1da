"""Kernel time in another precision, by shape and roofline where the trace has shapes; for `amp` and `precision`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leadline.whatif.gpus import Bound, Gpu, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import PRECISION_BYTES, KernelTable
from leadline.whatif.kinds import Selection
from leadline.whatif.operators import work_of_operator
from leadline.whatif.roofline import roofline_ns

UNKNOWN_GPU_RATIO = 2.0
"""Peak ratio per halving of the element size on an unknown GPU; every generation since Volta has at least this."""


@dataclass(frozen=True)
class Scaled:
    """What `scale_compute` did."""

    changed: int
    by_shape: int
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def scale_compute(
    graph: Graph, table: KernelTable, tasks: Selection, target: str, gpu: Gpu | None, bound: Bound
) -> Scaled:
    """Scales matrix, convolution and attention kernels to `target`; those already there are left alone."""
    kept = technique("matmul_low_precision", larger_is_faster=True).at(bound)
    chosen: list[int] = []
    factors: list[float] = []
    by_shape = unknown = 0
    for task, source in zip(tasks, table.precisions(tasks), strict=True):
        unknown += source is None
        if source is None:
            # fp32 is the framework's default; on GPUs with tf32 the pessimistic end takes that
            source = "tf32" if bound is not Bound.LOW and gpu is not None and gpu.peak_flops("tf32") else "fp32"
        if PRECISION_BYTES[source] < PRECISION_BYTES[target] or source == target:
            continue
        ratio, exact = _ratio(graph, int(table.shaped[task]), source, target, gpu)
        by_shape += exact
        chosen.append(task)
        factors.append(1 / max(1.0, ratio * kept))
    graph.scale(Selection(chosen), np.array(factors))
    warnings = []
    if gpu is None:
        warnings.append(
            "the GPU is not in the factor files, so matrix kernels are assumed twice as fast per halved element size; "
            "add its peak rates to whatif/factors"
        )
    if unknown:
        warnings.append(f"the precision of {unknown} matrix kernels is unknown from their names and is guessed")
    name = gpu.name if gpu is not None else "an unknown GPU"
    assumptions = (
        f"matrix kernels in {target} on {name} keep {kept:.0%} of the ratio of the two roofline bounds "
        f"({by_shape} of {len(chosen)} by their shapes, the others by peak rates)",
    )
    return Scaled(len(chosen), by_shape, assumptions, tuple(warnings))


def _ratio(graph: Graph, operator: int, source: str, target: str, gpu: Gpu | None) -> tuple[float, bool]:
    """Best possible speed-up of one kernel of an operator, and whether its shapes were known."""
    if gpu is None:
        return UNKNOWN_GPU_RATIO ** float(np.log2(PRECISION_BYTES[source] / PRECISION_BYTES[target]) or 1.0), False
    work = work_of_operator(graph, operator)
    if work is not None:
        before, after = roofline_ns(work, source, gpu), roofline_ns(work, target, gpu)
        if before is not None and after is not None and after > 0:
            return before / after, True
    old, new = gpu.peak_flops(source), gpu.peak_flops(target)
    if old is None or new is None:
        return PRECISION_BYTES[source] / PRECISION_BYTES[target], False
    return new / old, False
