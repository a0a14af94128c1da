"""Kernel time in another precision, by shape and roofline where the trace has shapes; for `amp` and `precision`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.hardware.gpus import Gpu, known_gpus
from leadline.hardware.precision import PRECISION_BYTES, PRODUCTS_OF_TF32
from leadline.hardware.roofline import Work, roofline_ns
from leadline.units import percent
from leadline.whatif.draws import Draw, Range, kept_of, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import IntArray, Selection
from leadline.whatif.operators import work_of_operator


@dataclass(frozen=True)
class Scaled:
    """What `scale_compute` did."""

    changed: int
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def scale_compute(
    graph: Graph, table: KernelTable, tasks: Selection, target: str, gpu: Gpu | None, draw: Draw
) -> Scaled:
    """Scales matrix, convolution and attention kernels to `target`; those already there are left alone.

    No operator with known shapes becomes faster than its roofline bound in the target precision.
    """
    usual = technique("matmul_low_precision", larger_is_faster=True)
    kept = (kept_of(gpu) or usual if gpu is not None else usual).at(draw)
    work = {at: work_of_operator(graph, at) for at in set(table.shaped[tasks.ids].tolist()) if at >= 0}
    fast_default = gpu is not None and gpu.peak_flops("tf32") is not None and not draw.hopeful("unknown precision")
    chosen: list[int] = []
    factors: list[float] = []
    by_shape = unknown = 0
    ratios: dict[tuple[Work | None, str], float] = {}
    emulated = np.array([PRODUCTS_OF_TF32.search(name) is not None for name in graph.names], dtype=np.bool_)
    emulates = emulated[graph.column("name")[tasks.ids]].tolist()
    for task, source, thrice in zip(tasks, table.precisions(tasks), emulates, strict=True):
        unknown += source is None
        if source is None:
            # fp32 is the framework's default; on GPUs with tf32 the pessimistic end takes that
            source = "tf32" if fast_default else "fp32"
        if PRECISION_BYTES[source] < PRECISION_BYTES[target] or source == target:
            continue
        known = work.get(int(table.shaped[task]))
        key = (known, "three of tf32" if thrice and source == "fp32" else source)
        ratio = ratios.get(key)
        if ratio is None:
            ratio = (
                _unknown_gpu_ratio(source, target, draw) if gpu is None else _ratio(known, key[1], target, gpu, draw)
            )
            ratios[key] = ratio
        by_shape += gpu is not None and known is not None
        chosen.append(task)
        factors.append(1 / max(1.0, ratio * kept))
    changed = Selection(chosen)
    before = graph.column("duration_ns")[changed.ids].copy()
    after = np.maximum(before * np.array(factors), shortest_kernel_ns(before, draw))
    if gpu is not None:
        after = _not_beyond_the_roofline(graph, table.shaped[changed.ids], work, before, after, target, gpu)
    graph.set_duration(changed, np.rint(after).astype(np.int64))
    return Scaled(len(changed), *_sentences(graph, target, gpu, kept, by_shape, len(changed), unknown))


def shortest_kernel_ns(before: NDArray[np.int64], draw: Draw) -> NDArray[np.float64]:
    """What kernels take at least, however little they do; those that are shorter already stay."""
    return np.minimum(before, technique("shortest_kernel_ns", larger_is_faster=False).at(draw))


def _sentences(
    graph: Graph, target: str, gpu: Gpu | None, kept: float, by_shape: int, changed: int, unknown: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Assumptions and warnings."""
    warnings = []
    if gpu is None:
        named = next((device.name for device in graph.info.devices if device.name), "")
        which = f"{named} is" if named else "the trace names no GPU, so it is"
        warnings.append(
            f"{which} not in the factor files: the range reaches from no gain at all to the largest ratio of peak "
            "rates of any known GPU; add its rates to hardware/tables to narrow it"
        )
    if unknown:
        warnings.append(f"the precision of {unknown} matrix kernels is unknown from their names and is guessed")
    if gpu is None:
        how = f"matrix kernels in {target} gain what the peak rates of known GPUs differ by, since this GPU is unknown"
    elif by_shape == changed:
        how = f"matrix kernels in {target} keep {percent(kept)} of the ratio of the {gpu.name}'s two roofline bounds"
    elif by_shape:
        how = (
            f"matrix kernels in {target} keep {percent(kept)} of the ratio of the {gpu.name}'s two "
            "roofline bounds where "
            f"their shapes are known ({by_shape} of {changed}), of its two peak rates elsewhere"
        )
    else:
        kept_part = f"{percent(kept)} of the ratio of the {gpu.name}'s two peak rates (no shapes)"
        how = f"matrix kernels in {target} keep {kept_part}"
    return (how,), tuple(warnings)


def _not_beyond_the_roofline(
    graph: Graph,
    operators: IntArray,
    work: Mapping[int, Work | None],
    before: IntArray,
    after: NDArray[np.float64],
    target: str,
    gpu: Gpu,
) -> NDArray[np.float64]:
    """Kernel times raised where an operator's kernels together would undercut its bound (but never above before)."""
    result = after.copy()
    for operator in np.unique(operators[operators >= 0]).tolist():
        known = work[operator]
        least = None if known is None else roofline_ns(known, target, gpu)
        if least is None:
            continue
        mine = operators == operator
        # a convolution's backward pass has two halves of equal work, each with a kernel of its own
        halves = 2 if int(mine.sum()) > 1 and "backward" in graph.names[graph.column("name")[operator]] else 1
        total = float(after[mine].sum())
        if 0 < total < least * halves:
            result[mine] = np.minimum(after[mine] * (least * halves / total), before[mine])
    return result


def _unknown_gpu_ratio(source: str, target: str, draw: Draw) -> float:
    """Ratio of two peak rates on a GPU of which nothing is known: nothing, the usual, or the most of any known one."""
    ratios = sorted(
        new / old
        for gpu in known_gpus()
        if (old := gpu.peak_flops(source)) is not None and (new := gpu.peak_flops(target)) is not None
    )
    if not ratios:
        usual = PRECISION_BYTES[source] / PRECISION_BYTES[target]
        return Range(usual, usual, 1.0, name="unknown GPU").at(draw)
    return Range(ratios[-1], ratios[len(ratios) // 2], 1.0, name="unknown GPU").at(draw)


def _ratio(work: Work | None, source: str, target: str, gpu: Gpu, draw: Draw) -> float:
    """Best possible speed-up of one kernel. Without shapes nobody knows whether arithmetic or memory limits it: it then
    lies between the ratio of the peaks and that of the bytes."""
    if source == "three of tf32":
        source = "fp32" if work is None or gpu.peak_flops("tf32") is None else "tf32"
        products = 3 if source == "tf32" else 1
    else:
        products = 1
    if work is not None:
        before = roofline_ns(Work(products * work.flops, work.elements), source, gpu)
        after = roofline_ns(work, target, gpu)
        if before is not None and after is not None and after > 0:
            return before / after
    old, new = gpu.peak_flops(source), gpu.peak_flops(target)
    if old is None or new is None:
        return PRECISION_BYTES[source] / PRECISION_BYTES[target]
    by_bytes = min(PRECISION_BYTES[source] / PRECISION_BYTES[target], new / old)
    return Range(new / old, math.sqrt(new / old * by_bytes), by_bytes, name="kernels without shapes").at(draw)
