"""`batch_size`: `factor` times as many samples in a step; the speed-up counts samples per second."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.draws import Draw, Range, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import worker_kinds
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count, require_positive
from leadline.whatif.scenarios.cpu_growth import growth
from leadline.whatif.scenarios.loader import fetch_ns, loads_of, mean_step_ns, mean_wait_ns, set_period, uses_workers
from leadline.whatif.selftime import PYTHON, SelfTimes
from leadline.whatif.units import Unit
from leadline.work.kernels import KernelClass

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
            parts = growth(graph, grows, times, draw)
            exponent = technique("cpu_batch_growth", larger_is_faster=factor < 1).at(draw)
            more = (factor**exponent - 1) * parts.growing_ns
            times.scale(grows, 1 + more / np.maximum(parts.own_ns, 1.0))
            growing = "in proportion" if exponent == 1 else f"with its power of {exponent:g}"
            how = (
                f"{parts.call_ns / 1000:.3g} µs of every operator, calls inside of it, sums of gradients and the "
                f"reading of weights do not depend on the batch, the rest grows {growing}"
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
