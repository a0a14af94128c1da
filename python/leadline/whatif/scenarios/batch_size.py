"""`batch_size`: `factor` times as many samples in a step; the speed-up counts samples per second."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.elementwise import cpu_nanoseconds_per_byte
from leadline.whatif.gpus import Draw, Range, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelClass, KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import worker_kinds
from leadline.whatif.model import ACCUMULATE
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count, require_positive
from leadline.whatif.scenarios.loader import fetch_ns, loads_of, mean_step_ns, mean_wait_ns, set_period, uses_workers
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

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        require_positive(self.name, values, ["factor"])
        factor = values.number("factor")
        loading = loads_of(graph)
        period = mean_step_ns(graph) * factor if loading and uses_workers(graph) else None
        waits = loading and mean_wait_ns(graph, loading) > fetch_ns(graph, loading, Draw())
        constant = graph.select(phase=CONSTANT)
        evidence = graph.info.evidence
        if evidence is not None and evidence.exponents:
            python = graph.select(name=f"^{re.escape(PYTHON)}$")
            grows = graph.select(kind=(TaskKind.GPU, TaskKind.CPU)) - constant - loading - python
            known = np.array([evidence.exponents.get(name, np.nan) for name in graph.names])
            usual = technique("memory_bound_batch", larger_is_faster=False).at(draw)
            exponents = known[graph.column("name")[grows.ids]]
            device = graph.column("kind")[grows.ids] == TaskKind.GPU
            # the second profile has noise of its own
            exponents = np.where(np.isnan(exponents), np.where(device, usual, 0.0), exponents)
            exponents = exponents * Range(0.92, 1.0, 1.08, name="measured growth").at(draw)
            SelfTimes(graph).scale(grows, factor**exponents)
            how = evidence.words
        elif worker_kinds(graph) == (TaskKind.GPU,):
            table = KernelTable(graph)
            copies = table.all(KernelClass.COPY) - constant
            grows = table.kernels - constant - copies
            graph.scale(grows, _kernel_factors(graph, grows, factor, draw))
            graph.scale(copies, factor)
            how = "kernels with idle multiprocessors fill these first, the others grow with the batch"
        else:
            python = graph.select(name=f"^{re.escape(PYTHON)}$")
            grows = graph.select(kind=TaskKind.CPU) - constant - loading - python
            times = SelfTimes(graph)
            own = times.total_ns()[grows.ids].astype(np.float64)
            overhead = _call_overhead_ns(own, draw)
            constant_ns = overhead + _weight_time_ns(graph, grows, own, draw)
            exponent = technique("cpu_batch_growth", larger_is_faster=factor < 1).at(draw)
            growth = factor**exponent - 1
            times.scale(grows, 1 + growth * np.maximum(own - constant_ns, 0) / np.maximum(own, 1.0))
            growing = "in proportion" if exponent == 1 else f"with its power of {exponent:g}"
            how = (
                f"{overhead / 1000:.3g} µs of every operator, clearing gradients and the reading of weights do not "
                f"depend on the batch, the rest grows {growing}"
            )
        if period is None:
            graph.scale(loading, factor, gaps=True)
        elif waits:
            set_period(graph, loading, period, 0.0)
            how += "; the loader's workers set the pace, and a batch takes them as many times longer"
        return Applied(
            graph,
            (how, "the weight update, collectives and Python time stay", "memory suffices and kernels stay the same"),
            count(tasks=len(grows), loading=len(loading)),
            samples=factor,
        )


def _kernel_factors(graph: Graph, tasks: Selection, factor: float, draw: Draw) -> NDArray[np.float64]:
    exponent = technique("memory_bound_batch", larger_is_faster=False).at(draw)
    if factor < 1:
        exponent = technique("memory_bound_batch", larger_is_faster=True).at(draw)
    found = np.empty(len(tasks))
    for at, task in enumerate(tasks):
        filled = graph.detail(task).get("blocks per SM")
        blocks = float(filled) if isinstance(filled, (int, float)) and filled > 0 else 1.0
        found[at] = (max(blocks * factor, 1.0) / max(blocks, 1.0)) ** exponent
    return found


def _weight_time_ns(graph: Graph, tasks: Selection, own: NDArray[np.float64], draw: Draw) -> NDArray[np.float64]:
    """Time of each task that goes into tensors as large as a parameter, which do not grow: all of it where the task
    clears or adds up gradients; in a matrix product, one pass over the operand or result at the trace's own memory
    speed. The pessimistic end lets products grow as a whole, the optimistic one counts a second pass (packing)."""
    found = np.zeros(len(tasks))
    parameters = _parameter_shapes(graph)
    per_byte = cpu_nanoseconds_per_byte(graph)
    passes = Range(2.0, 1.0, 0.0, name="passes over weights").at(draw)
    name, operator = graph.column("name"), graph.column("operator")
    for at, task in enumerate(tasks):
        short = graph.names[name[task]]
        if re.search(ACCUMULATE, graph.names[operator[task]]):
            found[at] = own[at]
            continue
        first = {"aten::mm": 0, "aten::addmm": 1, "aten::fill_": 0, "aten::zero_": 0}.get(short)
        shapes = graph.shapes(task) if first is not None and graph.detail(task) else []
        if first is None or len(shapes) <= first or not isinstance(shapes[first], list):
            continue
        if not short.endswith("mm"):
            found[at] = own[at] if tuple(shapes[0]) in parameters else 0.0
        elif len(shapes) > first + 1 and len(shapes[first]) == len(shapes[first + 1]) == 2:
            (rows, inner), columns = shapes[first], shapes[first + 1][1]
            of_parameters = [size for size in ((inner, columns), (rows, columns), (rows, inner)) if size in parameters]
            if of_parameters:
                found[at] = 4.0 * of_parameters[0][0] * of_parameters[0][1] * per_byte * passes
    return found


def _parameter_shapes(graph: Graph) -> frozenset[tuple[int, ...]]:
    """Shapes of what the weight update writes and gradients are added to, and their transposes."""
    marks = graph.select(phase=Phase.OPTIMIZER, kind=TaskKind.CPU) | graph.select(name=ACCUMULATE)
    found: set[tuple[int, ...]] = set()
    for task in marks:
        shapes = graph.shapes(task) if graph.detail(task) else []
        first = shapes[0] if shapes and isinstance(shapes[0], list) else []
        for shape in first if first and isinstance(first[0], list) else [first]:
            if shape and all(isinstance(axis, int) for axis in shape):
                found |= {tuple(shape), tuple(reversed(shape))}
    return frozenset(found)


def _call_overhead_ns(own: NDArray[np.float64], draw: Draw) -> float:
    """Cost of an operator that does almost nothing: a low percentile of the operators of this trace."""
    if not own.size:
        return 0.0
    percentile = Range(50, 20, 0, name="cost of a call").at(draw)
    return float(min(np.percentile(own, percentile), 10_000.0))
