"""Where the time of a step goes along its critical path: work, waits with a cause, and residuals with a class.

The path covers the window from its start to its end, so the rows of a ledger add up to the replayed time exactly. A
residual is trusted as far as it is as long as its equals: what is beyond the median of its class is unexplained.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.draws import Draw
from leadline.whatif.edits import transfer_ns
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import PHASE_NAMES, EdgeType, IntArray, LaneKind, Phase, TaskKind
from leadline.whatif.residuals import Residual, residuals
from leadline.whatif.simulator import Result
from leadline.whatif.tables import CROWDED, HIDDEN, PYTHON

WORK, WAIT, RESIDUAL = "work", "wait", "residual"
OTHER_RANKS = "for other ranks (estimated)"
LOADER = "for the data loader"
LAST_RANK = "for the rank that begins its step last"
_CLASSES = tuple(Residual)
_OF_TASK = {PYTHON: Residual.PYTHON, HIDDEN: Residual.HIDDEN, CROWDED: Residual.CROWDED}


@dataclass(frozen=True)
class Row:
    """`spent_ns` per step; `confidence` from 0 to 1: the share that is as long as usual for its kind."""

    sort: str
    name: str
    spent_ns: float
    confidence: float


def ledger(graph: Graph, result: Result) -> tuple[Row, ...]:
    """The rows of a replayed graph, the longest first; their sum is the replayed time per step."""
    path = result.critical_path
    if not path.size:
        return ()
    start, end = result.start_ns[path], result.end_ns[path]
    edge = _edges_between(graph, path)
    launched = np.zeros(path.size, dtype=np.bool_)
    linked = np.flatnonzero(edge >= 0)
    launched[linked] = np.isin(graph.edges["type"][edge[linked]], (EdgeType.LAUNCH, EdgeType.START))
    until = np.where(launched, np.minimum(end, np.append(start[1:], end[-1])), end)
    before = np.maximum.accumulate(np.concatenate(([0], until)))[:-1]
    after = np.maximum(before, until)
    lead = np.clip(np.minimum(start, after) - before, 0, None)
    own = after - before - lead
    found: dict[tuple[str, str], list[float]] = {}
    for key, spent, usual in (*_own(graph, path, own), *_leads(graph, path, lead, np.concatenate(([-1], edge)))):
        entry = found.setdefault(key, [0.0, 0.0])
        entry[0], entry[1] = entry[0] + spent, entry[1] + usual
    steps = max(len(result.steps), 1)
    rows = [Row(*key, spent / steps, usual / spent) for key, (spent, usual) in found.items() if spent > 0]
    return tuple(sorted(rows, key=lambda row: -row.spent_ns))


def _edges_between(graph: Graph, path: IntArray) -> IntArray:
    """Row of the edge from each task of the path to the next, -1 where there is none."""
    count = len(graph)
    keys = graph.edges["src"].astype(np.int64) * count + graph.edges["dst"]
    if not keys.size or path.size < 2:
        return np.full(max(path.size - 1, 0), -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    wanted = path[:-1] * count + path[1:]
    at = np.minimum(np.searchsorted(keys[order], wanted), keys.size - 1)
    found: IntArray = np.where(keys[order[at]] == wanted, order[at], -1)
    return found


Entry = tuple[tuple[str, str], float, float]


def _own(graph: Graph, path: IntArray, own: IntArray) -> Iterable[Entry]:
    """What the path's tasks themselves did."""
    table, found = KernelTable(graph), residuals(graph)
    collectives = graph.select(kind=TaskKind.COMM)
    moving = dict(zip(collectives, transfer_ns(graph, collectives, Draw()).tolist(), strict=True))
    kind, name, duration = graph.column("kind"), graph.column("name"), graph.column("duration_ns")
    phase, typical, workers = graph.column("phase"), found.task_ns, "parallel_threads" in graph.info.facts
    for task, spent in zip(path.tolist(), own.tolist(), strict=True):
        if spent <= 0:
            continue
        text = graph.names[name[task]]
        if text in _OF_TASK:
            yield (RESIDUAL, _OF_TASK[text].value), spent, spent * _as_usual(int(duration[task]), int(typical[task]))
        elif kind[task] == TaskKind.COMM:
            transfer = spent * min(moving.get(task, spent) / max(int(duration[task]), 1), 1.0)
            yield (WORK, "collectives"), transfer, transfer
            yield (WAIT, OTHER_RANKS), spent - transfer, 0.0
        elif kind[task] == TaskKind.GPU and graph.info.of_operations:
            yield (WORK, text), spent, spent
        elif kind[task] == TaskKind.GPU:
            yield (WORK, f"{table.of(task).value} on the device"), spent, spent
        elif kind[task] == TaskKind.DATA:
            yield ((WAIT, LOADER) if workers else (WORK, "data loading")), spent, spent
        else:
            yield (WORK, _work_name(int(phase[task]))), spent, spent


def _work_name(phase: int) -> str:
    loading = phase == Phase.DATA_LOADING
    return PHASE_NAMES[phase] if loading else f"operators and calls: {PHASE_NAMES[phase]}"


def _leads(graph: Graph, path: IntArray, lead: IntArray, edge: IntArray) -> Iterable[Entry]:
    """What passed before each task of the path, after the one before it."""
    found = residuals(graph)
    stream = np.array([lane.kind != LaneKind.THREAD for lane in graph.lanes], dtype=np.bool_)[graph.column("lane")]
    latency, gap, phase = graph.edges["latency_ns"], graph.column("gap_ns"), graph.column("phase")
    for place in np.flatnonzero(lead > 0).tolist():
        task, spent, link = int(path[place]), int(lead[place]), int(edge[place])
        if link >= 0 and found.edge_class[link] >= 0:
            name = _CLASSES[found.edge_class[link]].value
            yield (RESIDUAL, name), spent, spent * _as_usual(int(latency[link]), int(found.latency_ns[link]))
        elif place and stream[task]:
            before = int(path[place - 1])
            usual = _as_usual(int(gap[before]), int(found.gap_ns[before]))
            yield (RESIDUAL, Residual.DISPATCH.value), spent, spent * usual
        elif place and link < 0:
            # an operator that goes on after what it called
            yield (WORK, _work_name(int(phase[path[place - 1]]))), spent, spent
        elif not place and len(graph.info.ranks) > 1:
            yield (WAIT, LAST_RANK), spent, spent
        else:
            yield (RESIDUAL, Residual.PIN.value), spent, 0.0


def _as_usual(value: int, typical: int) -> float:
    """Share of a measured value that its class explains."""
    return min(1.0, typical / value) if value > 0 and typical >= 0 else 0.0
