"""Data loading as the step sees it: which tasks wait for a batch, and how long they wait at a given rate of batches."""

from __future__ import annotations

import numpy as np

from leadline.whatif.gpus import Bound, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.simulator import simulate

_MOST_TENSORS = 32
"""More are not the batch's: samples are stacked one by one."""


def loads_of(graph: Graph) -> Selection:
    """Loading spans with all CPU tasks nested in them."""
    spans = graph.select(kind=TaskKind.DATA) or graph.select(kind=TaskKind.CPU, phase=Phase.DATA_LOADING)
    return graph.subtree(spans) & graph.select(kind=(TaskKind.DATA, TaskKind.CPU)) if spans else spans


def uses_workers(graph: Graph) -> bool:
    """Whether batches come from worker processes (or threads) rather than from the training thread itself."""
    rows = set(graph.column("name")[loads_of(graph).ids].tolist())
    return any("MultiProcessing" in graph.names[row] for row in rows)


def mean_step_ns(graph: Graph) -> float:
    return float(simulate(graph).per_step_ns.mean())


def mean_wait_ns(graph: Graph, loads: Selection) -> float:
    """Time that a step spends in loading, mean over the steps that load."""
    spent = graph.column("duration_ns")[loads.ids] + np.maximum(graph.column("gap_ns")[loads.ids], 0)
    steps = np.unique(graph.column("step")[loads.ids])
    return float(spent.sum()) / max(steps.size, 1)


def own_cpu_ns(graph: Graph, loads: Selection) -> float:
    """CPU time of a step outside loading: of the threads of the training process, mean over the steps."""
    busy = graph.select(kind=TaskKind.CPU) - loads
    spent = graph.column("duration_ns")[busy.ids] + np.maximum(graph.column("gap_ns")[busy.ids], 0)
    return float(spent.sum()) / max(len(graph.info.steps), 1)


def fetch_ns(graph: Graph, loads: Selection, bound: Bound) -> float:
    """Time to take a ready batch from a worker process."""
    base = technique("loader_fetch_ns", larger_is_faster=False).at(bound)
    return base + tensors_of_batch(graph, loads) * technique("loader_fetch_tensor_ns", larger_is_faster=False).at(bound)


def tensors_of_batch(graph: Graph, loads: Selection) -> int:
    """Tensors in a batch: those that the loader stacks, or takes over from a worker, in one step; an input and its
    labels where the trace does not tell."""
    steps = max(np.unique(graph.column("step")[loads.ids]).size, 1)
    for name in (r"^aten::set_$", r"^aten::stack$"):
        per_step = len(loads & graph.select(name=name)) / steps
        if 0 < per_step <= _MOST_TENSORS:
            return max(1, round(per_step))
    return 2


def silence(graph: Graph, loads: Selection) -> None:
    """Every batch is ready at once."""
    graph.set_duration(loads, 0)
    graph.set_gap(loads, 0)


def set_period(graph: Graph, loads: Selection, period_ns: float, fetch_ns: float) -> None:
    """A batch arrives every `period_ns` and takes `fetch_ns` to take over; a step waits for what its work leaves."""
    silence(graph, loads)
    rest = simulate(graph)
    rest_ns = dict(zip(rest.steps, rest.per_step_ns.tolist(), strict=True))
    typical = float(np.mean(list(rest_ns.values())))
    step = graph.column("step")[loads.ids]
    for number in np.unique(step).tolist():
        first = int(loads.ids[step == number][0])
        wait = max(period_ns - float(rest_ns.get(number, typical)), fetch_ns)
        graph.set_duration(first, int(wait))
