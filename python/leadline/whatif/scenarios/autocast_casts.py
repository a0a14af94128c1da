"""The casts that autocast puts in front of matrix operators, as host time.

Parameters are fp32 and are cast once in each forward pass; an activation is cast where the operator before it gave
fp32 (PyTorch, "Autocast Op Reference"), which a trace does not say. Each cast has one more in the backward pass, of the
gradient. A cast is one small copy: it costs the host what a copy costs in this trace.
"""

from __future__ import annotations

import numpy as np

from leadline.units import duration
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import cost_per_kernel_ns
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import IntArray, Phase, Selection, TaskKind
from leadline.whatif.reading import dtypes_in
from leadline.whatif.selftime import SelfTimes
from leadline.work.kernels import COMPUTE

_ENOUGH = 5
_COPIES = (r"^aten::_to_copy$", r"^aten::clone$")
"""Operators that make a tensor and copy into it, as a cast does."""


def add_cast_calls(graph: Graph, table: KernelTable, draw: Draw) -> str:
    """Lengthens the calls of matrix operators by the casts before them. Returns a sentence's end about them."""
    each_ns = _copy_ns(graph) * technique("cast_calls", larger_is_faster=False).at(draw)
    activations = technique("cast_activations", larger_is_faster=False).at(draw)
    compute = table.all(*COMPUTE)
    count = 0.0
    for phase in (Phase.FORWARD, Phase.OTHER, Phase.BACKWARD):
        calls = graph.launchers_of(compute & graph.select(phase=phase)).ids
        operators = graph.shaped_operators()[calls]
        # kernels of one operator share its casts; the two products of a backward pass have one operator each
        _, place, sharing = np.unique(operators, return_inverse=True, return_counts=True)
        casts = (
            np.array([_casts(graph, at, activations, phase) for at in operators.tolist()]) / sharing[place.reshape(-1)]
        )
        count += float(casts.sum()) if calls.size else 0.0
        if calls.size:
            own = graph.column("duration_ns")[calls]
            graph.set_duration(Selection(calls), own + np.rint(casts * each_ns).astype(np.int64))
    steps = max(len(graph.info.steps), 1)
    return f"{count / steps:.0f} calls of {duration(int(each_ns))} a step, for parameters and some activations"


def _casts(graph: Graph, operator: int, activations: float, phase: Phase) -> float:
    """Casts that autocast adds for one matrix operator; in the backward pass half of them for each of its products."""
    if operator < 0:
        return 0.5
    types = dtypes_in(graph.detail(operator))
    tensors = sum(kind == "float" for kind in types)
    name = graph.names[graph.column("name")[operator]].rsplit("::", 1)[-1]
    if phase == Phase.BACKWARD:
        return (
            (2 + activations) if "conv" in name else (1 + activations / 2) if name in ("mm", "addmm") else activations
        )
    if "conv" in name or name in ("mm", "addmm", "linear"):
        return max(tensors - 1, 1) + activations
    return activations


def _copy_ns(graph: Graph) -> float:
    """Host time of an operator that copies into a new tensor, all that it calls included; what a kernel costs on
    average where the trace has none."""
    for pattern in _COPIES:
        copies = graph.select(name=pattern, kind=TaskKind.CPU).ids
        if copies.size >= _ENOUGH:
            return float(np.median(_with_callees_ns(graph)[copies]))
    return cost_per_kernel_ns(graph)


def _with_callees_ns(graph: Graph) -> IntArray:
    """Own time of every CPU task and of all that it calls; by task id."""
    total = SelfTimes(graph).total_ns()
    parent = graph.column("parent")
    on_cpu = graph.alive & (graph.column("kind") == TaskKind.CPU) & (parent >= 0)
    depth = np.zeros(len(graph), dtype=np.int64)
    at = np.flatnonzero(on_cpu)
    above = parent[at]
    while at.size:
        depth[at] += 1
        above = parent[above]
        at, above = at[above >= 0], above[above >= 0]
    for level in range(int(depth.max(initial=0)), 0, -1):
        mine = np.flatnonzero(on_cpu & (depth == level))
        np.add.at(total, parent[mine], total[mine])
    return total
