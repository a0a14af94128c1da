"""Slices per lane, measured or simulated, nested as the operators nest and free of partial overlaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, LaneKind
from leadline.whatif.selftime import SelfTimes
from leadline.whatif.simulator import Result


@dataclass(frozen=True)
class Slices:
    """Tasks of one lane, ordered so that a slice comes before those inside it. Times in ns from the window's start."""

    lane: int
    ids: IntArray
    start_ns: IntArray
    end_ns: IntArray


def measured_slices(graph: Graph) -> Iterator[Slices]:
    """What was measured; tasks that a scenario inserted have no measurement."""
    start = graph.column("start_ns")
    known = np.flatnonzero(graph.alive & (graph.column("measured_ns") > 0) & (start >= 0))
    yield from _by_lane(graph, known, start, _ends(graph, start, start + graph.column("measured_ns")))


def simulated_slices(graph: Graph, result: Result) -> Iterator[Slices]:
    """What was simulated."""
    ends = _ends(graph, result.start_ns, np.maximum(result.end_ns, result.start_ns))
    yield from _by_lane(graph, np.flatnonzero(graph.alive), result.start_ns, ends)


def _ends(graph: Graph, start: IntArray, end: IntArray) -> IntArray:
    """Until when each task is drawn: an operator lasts until the last task inside it on its thread has ended, and on
    through the gap behind that in which it goes on itself."""
    found = end.copy()
    times = SelfTimes(graph)
    goes_on = times.owner != times.holder
    holder, owner = times.holder[goes_on], times.owner[goes_on]
    np.maximum.at(found, owner, end[holder] + graph.column("gap_ns")[holder])
    alive = np.flatnonzero(graph.alive)
    parent, lane = graph.column("parent"), graph.column("lane")
    inner = alive[parent[alive] >= 0]
    inner = inner[(lane[parent[inner]] == lane[inner]) & graph.alive[parent[inner]]]
    for task in inner[np.argsort(-start[inner], kind="stable")].tolist():
        above = int(parent[task])
        if found[task] > found[above]:
            found[above] = found[task]
    return found


def _by_lane(graph: Graph, ids: IntArray, start: IntArray, end: IntArray) -> Iterator[Slices]:
    lanes = graph.column("lane")[ids]
    for lane in np.unique(lanes).tolist():
        mine = ids[lanes == lane]
        order = np.lexsort((graph.column("order")[mine], -end[mine], start[mine]))
        mine = mine[order]
        begins, ends = start[mine].copy(), end[mine].copy()
        if graph.lanes[lane].kind == LaneKind.THREAD:
            ends = _nested(begins, ends)
        elif mine.size > 1:
            # device work that overlaps on one stream is drawn up to its successor
            ends[:-1] = np.minimum(ends[:-1], np.maximum(begins[1:], begins[:-1]))
        yield Slices(lane, mine, begins, ends)


def _nested(start: IntArray, end: IntArray) -> IntArray:
    """Ends shortened so that every slice lies inside the one it starts in."""
    result = end.tolist()
    stack: list[int] = []
    for at, begin in enumerate(start.tolist()):
        while stack and result[stack[-1]] <= begin:
            stack.pop()
        if stack:
            result[at] = min(result[at], result[stack[-1]])
        stack.append(at)
    return np.array(result, dtype=np.int64)
