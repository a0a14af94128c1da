"""A graph flattened for the simulators: living tasks renumbered, edges in compressed rows, lane order resolved.

Both simulators (native/offline/simulate.cpp and reference.py) take exactly this; see reference.py for the rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Discipline, EdgeType, GraphError, IntArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """What a simulator runs. Task numbers are rows here; `ids[row]` is the graph's task id. Ids grow with the row.

    `next_on_lane`: following task of an ORDER lane, -1 at its end and elsewhere. `slot`: 1 where a task must wait for
    its turn on the lane (all but READY lanes). `launches`: incoming LAUNCH edges of a task on an ISSUE lane, 0 on
    other lanes. `initial`: tasks whose turn on the lane comes without a predecessor: heads of ORDER lanes, and
    unlaunched heads of ISSUE lanes in their order.
    """

    ids: IntArray
    lane: Int32
    duration_ns: Int64
    gap_ns: Int64
    earliest_ns: Int64
    group: Int32
    priority: NDArray[np.float64]
    next_on_lane: Int32
    launches: Int32
    pending: Int32
    initial: Int32
    discipline: NDArray[np.uint8]
    edge_offset: Int32
    edge_dst: Int32
    edge_type: NDArray[np.uint8]
    edge_latency_ns: Int64
    wait_offset: Int32
    wait_lane: Int32
    group_size: Int32


@dataclass(frozen=True)
class _Shape:
    """What follows from lanes, edges and waits alone; columns as in Program."""

    ids: IntArray
    next_on_lane: Int32
    launches: Int32
    pending: Int32
    initial: Int32
    edge_offset: Int32
    edge_dst: Int32
    edge_type: NDArray[np.uint8]
    edge_latency_ns: Int64
    wait_offset: Int32
    wait_lane: Int32


def flatten(graph: Graph, *, compiled: bool | None = None) -> Program:
    """The program of a graph. `compiled`: by the compiled core (True) or in Python (False); None takes what is there.

    Raises GraphError when an edge names a task that has been removed or durations are negative.
    """
    tasks = graph.tasks
    discipline = np.array([int(item.discipline) for item in graph.lanes], dtype=np.uint8)
    shape = _compiled_shape(graph, discipline) if compiled is not False else None
    if shape is None:
        shape = _shape(graph, discipline)
    whole = shape.ids.size == len(tasks)  # nothing was removed: columns serve as they are

    def column(name: str) -> NDArray[Any]:
        return np.ascontiguousarray(tasks[name] if whole else tasks[name][shape.ids])

    duration = column("duration_ns")
    if bool((duration < 0).any()):
        raise GraphError("a task has a negative duration; set it to 0 or more before simulating")
    group = column("group")
    return Program(
        ids=shape.ids,
        lane=column("lane"),
        duration_ns=duration,
        gap_ns=np.maximum(column("gap_ns"), -duration),
        earliest_ns=column("earliest_ns"),
        group=group,
        priority=column("priority"),
        next_on_lane=shape.next_on_lane,
        launches=shape.launches,
        pending=shape.pending,
        initial=shape.initial,
        discipline=discipline,
        edge_offset=shape.edge_offset,
        edge_dst=shape.edge_dst,
        edge_type=shape.edge_type,
        edge_latency_ns=shape.edge_latency_ns,
        wait_offset=shape.wait_offset,
        wait_lane=shape.wait_lane,
        group_size=np.bincount(group[group >= 0]).astype(np.int32),
    )


def _compiled_shape(graph: Graph, discipline: NDArray[np.uint8]) -> _Shape | None:
    try:
        from leadline import _simulate
    except ImportError:
        return None
    tasks, edges, waits = graph.tasks, graph.edges, graph.waits
    try:
        return _Shape(
            *_simulate.flatten(
                tasks["alive"].view(np.uint8), tasks["lane"], tasks["order"], discipline, edges["src"], edges["dst"],
                edges["type"], edges["latency_ns"], waits["task"], waits["lane"],
            )
        )  # fmt: skip
    except ValueError as error:
        raise GraphError(str(error)) from error


def _shape(graph: Graph, discipline: NDArray[np.uint8]) -> _Shape:
    tasks = graph.tasks
    ids = np.flatnonzero(tasks["alive"])
    row = np.full(len(tasks), -1, dtype=np.int64)
    row[ids] = np.arange(ids.size)
    lane, order = tasks["lane"][ids], tasks["order"][ids]
    src, dst = row[graph.edges["src"]], row[graph.edges["dst"]]
    kind, latency = graph.edges["type"].astype(np.int64), graph.edges["latency_ns"]
    if bool((src < 0).any()) or bool((dst < 0).any()):
        raise GraphError("an edge leads to a removed task; connect tasks before removing them, not after")
    of_task = discipline[lane]
    on_lane = np.lexsort((order, lane))
    same = lane[on_lane][1:] == lane[on_lane][:-1]
    extra = _inherited_launches(on_lane, lane, of_task, src, dst, kind)
    if extra.size:
        src, dst = np.concatenate((src, extra[:, 0])), np.concatenate((dst, extra[:, 1]))
        kind = np.concatenate((kind, np.full(len(extra), int(EdgeType.LAUNCH))))
        latency = np.concatenate((latency, np.zeros(len(extra), dtype=np.int64)))
    # launches of one call reach a stream in the stream's order, so edges are sorted by source, then target's order
    sorting = np.lexsort((order[dst], src))
    src, dst, kind, latency = src[sorting], dst[sorting], kind[sorting], latency[sorting]
    in_order = of_task == Discipline.ORDER
    next_on_lane = np.full(ids.size, -1, dtype=np.int32)
    first, second = on_lane[:-1][same], on_lane[1:][same]
    chained = in_order[first]
    next_on_lane[first[chained]] = second[chained]
    issued = of_task == Discipline.ISSUE
    launches = np.bincount(dst[kind == EdgeType.LAUNCH], minlength=ids.size)
    launches[~issued] = 0
    pending = np.bincount(dst, minlength=ids.size) + (of_task != Discipline.READY)
    heads = np.concatenate(([True], ~same)) if ids.size else np.zeros(0, dtype=np.bool_)
    initial = on_lane[(heads & in_order[on_lane]) | (issued & (launches == 0))[on_lane]]
    wait_task = row[graph.waits["task"]]
    by_task = np.argsort(wait_task, kind="stable")
    return _Shape(
        ids=ids,
        next_on_lane=next_on_lane,
        launches=launches.astype(np.int32),
        pending=pending.astype(np.int32),
        initial=initial.astype(np.int32),
        edge_offset=_offsets(src, ids.size),
        edge_dst=dst.astype(np.int32),
        edge_type=kind.astype(np.uint8),
        edge_latency_ns=np.ascontiguousarray(latency),
        wait_offset=_offsets(wait_task, ids.size),
        wait_lane=graph.waits["lane"][by_task].astype(np.int32),
    )


def _offsets(sources: IntArray, count: int) -> Int32:
    counts = np.bincount(sources, minlength=count) if sources.size else np.zeros(count, dtype=np.int64)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32)


def _inherited_launches(
    on_lane: IntArray, lane: Int32, of_task: NDArray[np.uint8], src: IntArray, dst: IntArray, kind: IntArray
) -> IntArray:
    """(source, target) for work on streams that nothing launches: it is issued with the task before it."""
    is_launch = kind == EdgeType.LAUNCH
    launched = np.zeros(of_task.size, dtype=np.bool_)
    launched[dst[is_launch]] = True
    rows = on_lane[of_task[on_lane] == Discipline.ISSUE]
    orphan = ~launched[rows]
    if not orphan.any():
        return np.zeros((0, 2), dtype=np.int64)
    holder = np.maximum.accumulate(np.where(orphan, -1, np.arange(rows.size)))
    valid = orphan & (holder >= 0)
    valid[valid] &= lane[rows[holder[valid]]] == lane[rows[valid]]
    sources: dict[int, list[int]] = {}
    wanted = set(rows[holder[valid]].tolist())
    for source, target in zip(src[is_launch].tolist(), dst[is_launch].tolist(), strict=True):
        if target in wanted:
            sources.setdefault(target, []).append(source)
    pairs = [
        (source, orphaned)
        for orphaned, held in zip(rows[valid].tolist(), rows[holder[valid]].tolist(), strict=True)
        for source in sources[held]
    ]
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)
