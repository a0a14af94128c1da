"""Data loading as the step sees it: which tasks wait for a batch, and how long they wait at a given rate of batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.draws import Draw, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.selftime import PYTHON
from leadline.whatif.simulator import simulate

_MOST_TENSORS = 32
"""More are not the batch's: samples are stacked one by one."""


def loads_of(graph: Graph) -> Selection:
    """Loading spans of the training process with all CPU tasks nested in them."""
    spans = graph.select(kind=TaskKind.DATA) - workers_of(graph)
    spans = spans or graph.select(kind=TaskKind.CPU, phase=Phase.DATA_LOADING)
    return graph.subtree(spans) & graph.select(kind=(TaskKind.DATA, TaskKind.CPU)) if spans else spans


def workers_of(graph: Graph) -> Selection:
    """What worker processes do, where the trace shows it: all tasks of the threads that do nothing but load."""
    kind, lane, alive = graph.column("kind"), graph.column("lane"), graph.alive
    python = np.array([name == PYTHON for name in graph.names], dtype=np.bool_)[graph.column("name")]
    loading = np.unique(lane[alive & (kind == TaskKind.DATA)])
    else_too = np.unique(lane[alive & (kind != TaskKind.DATA) & ~python])
    return Selection(alive & np.isin(lane, np.setdiff1d(loading, else_too)))


def outermost(graph: Graph, loads: Selection) -> int:
    """How often the loop takes a batch: tasks of loading that are in no other."""
    inside = loads.mask(len(graph))
    parent = graph.column("parent")[loads.ids]
    return int((~(inside[parent] & (parent >= 0))).sum())


def worker_count(graph: Graph) -> int:
    """Worker processes that the trace shows; 0 where it shows none."""
    return int(np.unique(graph.column("lane")[workers_of(graph).ids]).size)


def worker_batch_ns(graph: Graph) -> float | None:
    """What a worker spends on one batch; None where the trace has no marks of batches."""
    workers = workers_of(graph)
    marks = workers & graph.select(name=r"^data loading$") & Selection(graph.column("parent") < 0)
    if not marks:
        return None
    within = graph.subtree(marks)
    spent = graph.column("duration_ns")[within.ids] + np.maximum(graph.column("gap_ns")[within.ids], 0)
    return float(spent.sum()) / len(marks)


def uses_workers(graph: Graph) -> bool:
    """Whether batches come from worker processes (or threads) rather than from the training thread itself."""
    if workers_of(graph):
        return True
    loads = loads_of(graph)
    rows = set(graph.column("name")[loads.ids].tolist())
    details = {str(graph.detail(task).get("loader", "")) for task in loads if graph.detail(task)}
    return any("MultiProcessing" in text for text in (*(graph.names[row] for row in rows), *details))


def mean_step_ns(graph: Graph) -> float:
    return float(simulate(graph).per_step_ns.mean())


def mean_wait_ns(graph: Graph, loads: Selection) -> float:
    """Time that a step spends in loading, mean over the steps that load."""
    duration = graph.column("duration_ns")[loads.ids]
    if workers_of(graph):  # which the wait is an edge from, and no part of the duration
        duration = np.maximum(duration, graph.column("measured_ns")[loads.ids])
    spent = duration + np.maximum(graph.column("gap_ns")[loads.ids], 0)
    steps = np.unique(graph.column("step")[loads.ids])
    return float(spent.sum()) / max(steps.size, 1)


def own_cpu_ns(graph: Graph, loads: Selection) -> float:
    """CPU time of a step outside loading: of the threads of the training process, mean over the steps."""
    busy = graph.select(kind=TaskKind.CPU) - loads
    spent = graph.column("duration_ns")[busy.ids] + np.maximum(graph.column("gap_ns")[busy.ids], 0)
    return float(spent.sum()) / max(len(graph.info.steps), 1)


def fetch_ns(graph: Graph, loads: Selection, draw: Draw) -> float:
    """Time to take a ready batch from a worker process."""
    base = technique("loader_fetch_ns", larger_is_faster=False).at(draw)
    return base + tensors_of_batch(graph, loads) * technique("loader_fetch_tensor_ns", larger_is_faster=False).at(draw)


def tensors_of_batch(graph: Graph, loads: Selection) -> int:
    """Tensors in a batch: those that the loader stacks, or takes over from a worker, in one step; an input and its
    labels where the trace does not show."""
    steps = max(np.unique(graph.column("step")[loads.ids]).size, 1)
    for name in (r"^aten::set_$", r"^aten::stack$"):
        per_step = len(loads & graph.select(name=name)) / steps
        if 0 < per_step <= _MOST_TENSORS:
            return max(1, round(per_step))
    return 2


def batch_times_ns(graph: Graph, loads: Selection, mean_ns: float) -> NDArray[np.float64]:
    """What single batches took, scaled to a mean: by the marks of workers, else by the loading of each step."""
    marks = workers_of(graph) & graph.select(name=r"^data loading$") & Selection(graph.column("parent") < 0)
    if marks:
        found = np.array([_spent(graph, graph.subtree([mark])) for mark in marks], dtype=np.float64)
    else:
        step = graph.column("step")[loads.ids]
        found = np.array([_spent(graph, Selection(loads.ids[step == number])) for number in np.unique(step).tolist()])
    found = found[found > 0]
    return found / found.mean() * mean_ns if found.size else np.array([mean_ns])


def _spent(graph: Graph, tasks: Selection) -> float:
    gaps = np.maximum(graph.column("gap_ns")[tasks.ids], 0)
    return float((graph.column("duration_ns")[tasks.ids] + gaps).sum())


def queue_pace_ns(batch_ns: NDArray[np.float64], step_ns: NDArray[np.float64], workers: int) -> float:
    """Mean time of a step that takes its batches from `workers` with two batches in advance each, as torch's loader
    hands them out: batch i comes from worker i modulo their number and is taken in that order. Batches and steps take
    the given times in turn, each in an order of its own."""
    count, ahead = 50 * workers + 400, 2 * workers
    order = np.random.default_rng(workers)
    makes = order.choice(batch_ns, count)
    works = order.choice(step_ns, count)
    free = [0.0] * workers
    taken = np.zeros(count)
    now = 0.0
    for at in range(count):
        begin = max(free[at % workers], taken[at - ahead] if at >= ahead else 0.0)
        free[at % workers] = begin + makes[at]
        now = max(now, free[at % workers])
        taken[at] = now
        now += works[at]
    begin_at = count // 4  # the queue is full at first, which a long run is not
    return float((taken[-1] - taken[begin_at]) / (count - 1 - begin_at))


def silence(graph: Graph, loads: Selection) -> None:
    """Every batch is ready at once."""
    graph.set_duration(loads, 0)
    graph.set_gap(loads, 0)


def rest_of_steps_ns(graph: Graph, loads: Selection) -> NDArray[np.float64]:
    """What every step takes where no batch is waited for."""
    quiet = graph.copy()
    quiet.remove(workers_of(quiet))
    silence(quiet, loads)
    return np.maximum(simulate(quiet).per_step_ns.astype(np.float64), 0.0)


def set_period(graph: Graph, loads: Selection, period_ns: float, fetch_ns: float) -> None:
    """A batch arrives every `period_ns` and takes `fetch_ns` to take over; a step waits for what its work leaves.
    Workers that the trace shows are replaced by that."""
    graph.remove(workers_of(graph))
    silence(graph, loads)
    rest = simulate(graph)
    rest_ns = dict(zip(rest.steps, rest.per_step_ns.tolist(), strict=True))
    typical = float(np.mean(list(rest_ns.values())))
    step = graph.column("step")[loads.ids]
    for number in np.unique(step).tolist():
        first = int(loads.ids[step == number][0])
        wait = max(period_ns - float(rest_ns.get(number, typical)), fetch_ns)
        graph.set_duration(first, int(wait))
