"""What a graph holds that was measured and not explained, by class, and the graph with all at their class's median.

A replay that puts every measured gap back where it was is exact whatever the graph is worth. `causal` puts the median
of its class in the place of each: what then is missing or too much is what the graph does not know about causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import BoolArray, EdgeType, IntArray, LaneKind, TaskKind
from leadline.whatif.selftime import PYTHON
from leadline.whatif.tables import CROWDED, HIDDEN


class Residual(Enum):
    """Classes of measured time without a cause of its own; the value is what a reader sees."""

    PYTHON = "Python between events"
    LATENCY = "launch to start"
    DISPATCH = "between two kernels"
    WAKE_UP = "waking another thread"
    GUESSED = "after a guessed wait"
    HIDDEN = "unrecorded work"
    CROWDED = "no room on the device"
    PIN = "start without a cause"
    DELAY = "before an operation of a job"


@dataclass(frozen=True)
class Residuals:
    """Typical values, all in ns. `task_ns` and `gap_ns` run by task id, `latency_ns` by edge; -1 where a value is no
    residual. `task_class`, `gap_class` and `edge_class`: row of `Residual`, -1 likewise."""

    task_ns: IntArray
    task_class: IntArray
    gap_ns: IntArray
    gap_class: IntArray
    latency_ns: IntArray
    edge_class: IntArray


_ROW = {kind: row for row, kind in enumerate(Residual)}


def residuals(graph: Graph) -> Residuals:
    """The residuals of a graph with the median of each class of equals."""
    count, edges = len(graph), len(graph.edges)
    task_ns, gap_ns, latency_ns = (np.full(size, -1, dtype=np.int64) for size in (count, count, edges))
    task_class, gap_class, edge_class = (np.full(size, -1, dtype=np.int64) for size in (count, count, edges))
    before, after = neighbours(graph)
    name, duration = graph.column("name").astype(np.int64), graph.column("duration_ns")
    width = len(graph.names) + 1
    for text, kind in ((PYTHON, Residual.PYTHON), (HIDDEN, Residual.HIDDEN), (CROWDED, Residual.CROWDED)):
        if text not in graph.names:
            continue
        mine = np.flatnonzero((name == graph.names.index(text)) & graph.alive)
        follows, leads = _name_of(name, after[mine]), _name_of(name, before[mine])
        if kind is Residual.HIDDEN:
            # the same place of the same graph in every step: the work there is the same as well
            place = (follows * width + leads) * len(graph.lanes) + graph.column("lane")[mine]
            keys: tuple[IntArray, ...] = (_place_in_step(graph, place, mine), place, follows)
        else:
            keys = (follows * width + leads, follows) if kind is Residual.PYTHON else (follows,)
        task_ns[mine], task_class[mine] = typical(keys, duration[mine]), _ROW[kind]
    _gaps(graph, after, gap_ns, gap_class)
    _latencies(graph, latency_ns, edge_class)
    return Residuals(task_ns, task_class, gap_ns, gap_class, latency_ns, edge_class)


def _place_in_step(graph: Graph, key: IntArray, tasks: IntArray) -> IntArray:
    """A key for every task that it shares with those of other steps that have the same key as often before them."""
    step = graph.column("step")[tasks].astype(np.int64)
    order = np.argsort(graph.column("order")[tasks], kind="stable")
    number = np.empty(tasks.size, dtype=np.int64)
    _, which = np.unique(np.stack((key, step)), axis=1, return_inverse=True)
    number[order] = count_so_far(which.reshape(-1)[order])
    _, alike = np.unique(np.stack((key, number)), axis=1, return_inverse=True)
    found: IntArray = alike.reshape(-1)
    return found


def _gaps(graph: Graph, after: IntArray, gap_ns: IntArray, gap_class: IntArray) -> None:
    """Pauses between two pieces of work of a stream, by stream and by whether one of them is a copy."""
    stream = np.array([lane.kind == LaneKind.STREAM for lane in graph.lanes], dtype=np.bool_)
    lane, gap = graph.column("lane").astype(np.int64), graph.column("gap_ns")
    mine = np.flatnonzero(graph.alive & stream[lane] & (after >= 0) & (gap != 0))
    copy = graph.column("bytes") > 0
    key = lane[mine] * 2 + (copy[mine] | copy[after[mine]])
    gap_ns[mine], gap_class[mine] = medians(key, gap[mine]), _ROW[Residual.DISPATCH]


def _latencies(graph: Graph, latency_ns: IntArray, edge_class: IntArray) -> None:
    """Latencies of launches by the call's name, of hand-overs by thread, of guessed waits, of causeless starts."""
    kind, latency = graph.edges["type"], graph.edges["latency_ns"]
    source = graph.edges["src"]
    duration = graph.column("duration_ns")
    launch = np.flatnonzero((kind == EdgeType.LAUNCH) & (latency > 0))
    # a call that took long did its launch at its end: what is usual counts from there
    behind = latency[launch] - duration[source[launch]]
    key = graph.column("name")[source[launch]].astype(np.int64)
    usual = medians(key, behind) + duration[source[launch]]
    short = medians(key, latency[launch])
    latency_ns[launch] = np.maximum(np.maximum(usual, np.minimum(short, latency[launch])), 0)
    edge_class[launch] = _ROW[Residual.LATENCY]
    lane = graph.column("lane").astype(np.int64)
    for edge, which in ((EdgeType.THREAD, Residual.WAKE_UP), (EdgeType.GUESSED, Residual.GUESSED)):
        mine = np.flatnonzero((kind == edge) & (latency > 0))
        latency_ns[mine] = medians(lane[graph.edges["dst"][mine]], latency[mine])
        edge_class[mine] = _ROW[which]
    if graph.info.of_operations:
        mine = np.flatnonzero((kind == EdgeType.DEPENDENCY) & (latency > 0))
        latency_ns[mine] = medians(graph.column("name")[graph.edges["dst"][mine]].astype(np.int64), latency[mine])
        edge_class[mine] = _ROW[Residual.DELAY]
    pinned = np.flatnonzero((kind == EdgeType.PINNED) & (latency > 0))
    before, behind = graph.edges["src"][pinned], graph.edges["dst"][pinned]
    name = graph.column("name").astype(np.int64)
    pair = (name[before] * len(graph.names) + name[behind]) * len(graph.lanes) + lane[behind]
    latency_ns[pinned] = typical((_place_in_step(graph, pair, behind), pair, lane[behind]), latency[pinned])
    edge_class[pinned] = _ROW[Residual.PIN]


def causal(graph: Graph) -> Graph:
    """The graph with every residual at the median of its class and without fixed starts."""
    found = residuals(graph)
    result = graph.copy()
    known = found.task_class >= 0
    result.tasks.write("duration_ns")[known] = found.task_ns[known]
    known = found.gap_class >= 0
    gap = np.where(known, found.gap_ns, graph.column("gap_ns"))
    result.tasks.write("gap_ns")[:] = np.maximum(gap, -result.column("duration_ns"))
    known = found.edge_class >= 0
    result.edges.write("latency_ns")[known] = found.latency_ns[known]
    result.tasks.write("earliest_ns")[:] = np.where(_opens(graph), graph.column("earliest_ns"), 0)
    return result


def _opens(graph: Graph) -> BoolArray:
    """Tasks whose fixed start is a fact about the window: where another rank's clock stood when it began."""
    found: BoolArray = (graph.column("kind") == TaskKind.CPU) & (graph.column("parent") < 0)
    return found


def medians(key: IntArray, value: IntArray) -> IntArray:
    """For every value the median (the lower one of two) of all with the same key."""
    if not value.size:
        return value.astype(np.int64)
    order = np.lexsort((value, key))
    sorted_key, sorted_value = key[order], value[order]
    first = np.flatnonzero(np.concatenate(([True], sorted_key[1:] != sorted_key[:-1])))
    size = np.diff(np.append(first, key.size))
    result = np.empty(value.size, dtype=np.int64)
    result[order] = np.repeat(sorted_value[first + (size - 1) // 2], size)
    return result


def typical(keys: Sequence[IntArray], value: IntArray) -> IntArray:
    """For every value the median of its equals: by the first of the keys that it shares with another, of all where it
    shares none. A value that is alone says nothing about itself."""
    result = medians(np.zeros_like(value), value)
    for key in reversed(keys):
        _, which, size = np.unique(key, return_inverse=True, return_counts=True)
        shared = size[which.reshape(-1)] > 1
        result[shared] = medians(key, value)[shared]
    return result


def neighbours(graph: Graph) -> tuple[IntArray, IntArray]:
    """For every living task the one before and the one after it on its lane, -1 for none; by task id."""
    ids = np.flatnonzero(graph.alive)
    ids = ids[np.lexsort((graph.column("order")[ids], graph.column("lane")[ids]))]
    same = graph.column("lane")[ids[1:]] == graph.column("lane")[ids[:-1]]
    before, after = (np.full(len(graph), -1, dtype=np.int64) for _ in range(2))
    before[ids[1:][same]] = ids[:-1][same]
    after[ids[:-1][same]] = ids[1:][same]
    return before, after


def _name_of(name: IntArray, tasks: IntArray) -> IntArray:
    """Names of tasks plus one, 0 for no task."""
    return np.where(tasks >= 0, name[np.maximum(tasks, 0)] + 1, 0)


def count_so_far(key: IntArray) -> IntArray:
    """How often each value has come before."""
    order = np.argsort(key, kind="stable")
    fresh = np.concatenate((np.ones(min(key.size, 1), dtype=np.bool_), key[order][1:] != key[order][:-1]))
    first = np.maximum.accumulate(np.where(fresh, np.arange(key.size), 0))
    found = np.empty(key.size, dtype=np.int64)
    found[order] = np.arange(key.size) - first
    return found
