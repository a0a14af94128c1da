"""`batch_size`: `factor` times as many samples in a step; the speed-up counts samples per second."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.elementwise import cpu_nanoseconds_per_byte
from leadline.whatif.gpus import Bound, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelClass, KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import worker_kinds
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count, require_positive
from leadline.whatif.scenarios.loader import loads_of, mean_step_ns, mean_wait_ns, set_period, uses_workers
from leadline.whatif.selftime import PYTHON, SelfTimes
from leadline.whatif.units import Unit

CONSTANT = (Phase.OPTIMIZER, Phase.ZERO_GRAD)


class BatchSize(Scenario):
    """Scales the work that grows with the batch; the update, collectives and per-call costs stay."""

    name = "batch_size"
    advice = "use a larger batch, if memory and convergence allow"
    parameters = (Parameter("factor", Unit.FACTOR, "new batch over old batch", "2"),)

    def title(self, values: Values) -> str:
        return f"{self.name} {values.number('factor'):g}x"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        grows = graph.select(kind=worker_kinds(graph)) - graph.select(phase=CONSTANT)
        return None if grows else "the window has no work outside the weight update"

    def apply(self, graph: Graph, values: Values, bound: Bound) -> Applied:
        require_positive(self.name, values, ["factor"])
        factor = values.number("factor")
        loading = loads_of(graph)
        period = mean_step_ns(graph) * factor if loading and uses_workers(graph) else None
        waits = loading and mean_wait_ns(graph, loading) > technique("loader_fetch_ns", larger_is_faster=False).expected
        constant = graph.select(phase=CONSTANT)
        if worker_kinds(graph) == (TaskKind.GPU,):
            table = KernelTable(graph)
            copies = table.all(KernelClass.COPY) - constant
            grows = table.kernels - constant - copies
            graph.scale(grows, _kernel_factors(graph, grows, factor, bound))
            graph.scale(copies, factor)
            how = "kernels with idle multiprocessors fill these first, the others grow with the batch"
        else:
            python = graph.select(name=f"^{re.escape(PYTHON)}$")
            grows = graph.select(kind=TaskKind.CPU) - constant - loading - python
            times = SelfTimes(graph)
            own = times.total_ns()[grows.ids].astype(np.float64)
            overhead = _call_overhead_ns(own, bound)
            constant_ns = overhead + _weight_time_ns(graph, grows, bound)
            times.scale(grows, 1 + (factor - 1) * np.maximum(own - constant_ns, 0) / np.maximum(own, 1.0))
            how = (
                f"{overhead / 1000:.3g} µs of every operator and the reading of its weights do not depend on the "
                "batch, the rest grows with it"
            )
        if period is None:
            graph.scale(loading, factor, gaps=True)
        elif waits:
            # the workers set the pace: a batch of twice the size takes them twice as long
            set_period(graph, loading, period, 0.0)
        return Applied(
            graph,
            (how, "the weight update, collectives and Python time stay", "memory suffices and kernels stay the same"),
            count(tasks=len(grows), loading=len(loading)),
            samples=factor,
        )


def _kernel_factors(graph: Graph, tasks: Selection, factor: float, bound: Bound) -> NDArray[np.float64]:
    exponent = technique("memory_bound_batch", larger_is_faster=False).at(bound)
    if factor < 1:
        exponent = technique("memory_bound_batch", larger_is_faster=True).at(bound)
    found = np.empty(len(tasks))
    for at, task in enumerate(tasks):
        filled = graph.detail(task).get("blocks per SM")
        blocks = float(filled) if isinstance(filled, (int, float)) and filled > 0 else 1.0
        found[at] = (max(blocks * factor, 1.0) / max(blocks, 1.0)) ** exponent
    return found


def _weight_time_ns(graph: Graph, tasks: Selection, bound: Bound) -> NDArray[np.float64]:
    """Time to move the operand of each matrix product that has no batch dimension, at the trace's own memory speed."""
    found = np.zeros(len(tasks))
    batch = _batch(graph)
    # the pessimistic end lets all of it grow, the optimistic one counts a second pass (packing)
    passes = {Bound.LOW: 2.0, Bound.EXPECTED: 1.0, Bound.HIGH: 0.0}[bound]
    if batch == 0 or passes == 0:
        return found
    per_byte = cpu_nanoseconds_per_byte(graph)
    names = graph.column("name")
    for at, task in enumerate(tasks):
        name, shapes = graph.names[names[task]], graph.shapes(task) if graph.detail(task) else []
        first = {"aten::mm": 0, "aten::addmm": 1}.get(name)
        if first is None or len(shapes) < first + 2 or len(shapes[first]) != 2:
            continue
        rows, inner = shapes[first]
        sizes = [rows, inner, shapes[first + 1][1]]
        if batch in sizes:
            sizes.remove(batch)
            found[at] = 4.0 * sizes[0] * sizes[1] * per_byte * passes
    return found


def _batch(graph: Graph) -> int:
    """Samples in a step: the most common first dimension of the inputs of layers; 0 when no shape tells."""
    sizes = [
        shapes[0][0]
        for task in graph.select(name=r"^aten::(linear|conv\dd|embedding)$", phase=Phase.FORWARD)
        if (shapes := graph.shapes(task)) and isinstance(shapes[0], list) and shapes[0]
    ]
    return int(max(set(sizes), key=sizes.count)) if sizes else 0


def _call_overhead_ns(own: NDArray[np.float64], bound: Bound) -> float:
    """Cost of an operator that does almost nothing: a low percentile of the operators of this trace."""
    if not own.size:
        return 0.0
    percentile = {Bound.LOW: 50, Bound.EXPECTED: 20, Bound.HIGH: 0}[bound]
    return float(min(np.percentile(own, percentile), 10_000.0))
