"""`fuse_elementwise`: runs of element-wise kernels become one kernel each (torch.compile, a fused operator, Triton)."""

from __future__ import annotations

import math
from typing import Any

from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import calls_of, stream_runs
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Phase, Selection
from leadline.whatif.scenarios.base import Applied, Scenario, Values, count
from leadline.work.kernels import KernelClass


class FuseElementwise(Scenario):
    """Keeps the longest kernel of each run, slightly lengthened, and removes the others with their launches."""

    name = "fuse_elementwise"
    advice = "fuse element-wise operators (torch.compile)"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        return (
            None
            if _runs(graph)
            else "no two element-wise kernels of forward or backward follow one another on a stream"
        )

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        factor = technique("fused_elementwise", larger_is_faster=False).at(draw)
        duration = graph.column("duration_ns")
        kept: list[int] = []
        gone: list[int] = []
        limits: list[int] = []
        runs = _runs(graph)
        for run in runs:
            longest = max(run, key=lambda task: int(duration[task]))
            kept.append(longest)
            limits.append(min(int(duration[longest] * factor), int(sum(duration[task] for task in run))))
            gone += [task for task in run if task != longest]
        for task, limit in zip(kept, limits, strict=True):
            graph.set_duration(task, limit)
        removed = Selection(gone)
        graph.remove(removed | calls_of(graph, removed))
        return Applied(
            graph,
            (
                f"a fused kernel takes {factor:g} of its longest member: intermediate values stay in registers",
                "neighbouring element-wise kernels on tensors of one size can be fused (no other reader between them)",
            ),
            count(runs=len(runs), removed_kernels=len(gone)),
        )


def _runs(graph: Graph) -> list[list[int]]:
    light = KernelTable(graph).all(KernelClass.ELEMENTWISE)
    light = light - graph.select(phase=(Phase.OPTIMIZER, Phase.ZERO_GRAD))
    found: list[list[int]] = []
    for run in stream_runs(graph, light):
        part: list[int] = []
        for task in run.tolist():
            # without shapes neighbours may fit; with them only tensors of one size flow from one into the next
            if part and not _fits(graph, part[-1], task):
                found.append(part)
                part = []
            part.append(task)
        found.append(part)
    return [part for part in found if len(part) > 1]


def _fits(graph: Graph, before: int, after: int) -> bool:
    """Whether the largest operands of two kernels have equally many elements, as far as the trace tells."""
    sizes = [_elements(graph.shapes(task)) for task in (before, after)]
    return 0 in sizes or sizes[0] == sizes[1]


def _elements(shapes: list[Any]) -> int:
    plain = [shape for shape in shapes if shape and all(isinstance(axis, int) for axis in shape)]
    return max((math.prod(shape) for shape in plain), default=0)
