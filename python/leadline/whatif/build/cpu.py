"""CPU timelines: every operator, API call and data-loading span of a thread becomes one task.

Spans nest, tasks of a lane do not: a task lasts from its span's start to the start of the first span inside it, and its
gap is the rest of the time until the next span or the end of the outermost one. Durations and gaps of a thread add
up to its outermost spans exactly; the time between those is Python, which threads.py turns into tasks of its own.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.steps.names import is_loading
from leadline.trace.tables import CALL_KINDS, Kind
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import Discipline, IntArray, Lane, LaneKind, Phase, TaskKind


@dataclass(frozen=True)
class Timeline:
    """Tasks of one thread in lane order, parallel arrays: graph ids, span ends, row of the outermost span's task."""

    thread: int
    lane: int
    ids: IntArray
    span_end_ns: IntArray
    root: IntArray

    @property
    def root_end_ns(self) -> IntArray:
        """End of the outermost span around each task."""
        ends: IntArray = self.span_end_ns[self.root]
        return ends


def lay_out(draft: Draft, main: int) -> list[Timeline]:
    """Add a lane and the tasks of every thread that did something in the window. `main` is the training loop's thread;
    threads of other processes are data-loading workers, so all that they do is data loading."""
    trace = draft.trace
    events = trace.events
    begin, end = draft.window_ns
    data_names = np.array([is_loading(name) for name in trace.strings], dtype=np.bool_)
    is_data = np.isin(events["kind"], [Kind.REGION, Kind.PHASE]) & data_names[events["name"]]
    calls = np.isin(events["kind"], [int(kind) for kind in (Kind.OPERATOR, *CALL_KINDS)])
    inside = (events["start_ns"] >= begin) & (events["start_ns"] < end) & (events["thread"] >= 0)
    rows = np.flatnonzero((calls | is_data) & inside)
    timelines = []
    for thread in np.unique(events["thread"][rows]).tolist():
        mine = rows[events["thread"][rows] == thread]
        worker = main >= 0 and trace.threads[thread].process != trace.threads[main].process
        timelines.append(_thread(draft, thread, mine, is_data[mine] | worker))
    return timelines


def _thread(draft: Draft, thread: int, rows: IntArray, is_data: np.ndarray) -> Timeline:
    from leadline import _simulate

    trace = draft.trace
    events = trace.events
    start = events["start_ns"][rows]
    end = start + events["duration_ns"][rows]
    parent, root = _simulate.nesting(start, end)
    # a child may end after its parent by rounding; the outermost end then moves with it
    root_end = end.copy()
    np.maximum.at(root_end, root, end)
    following = np.append(start[1:], np.iinfo(np.int64).max)
    head_end = np.minimum(end, following)
    limit = np.minimum(root_end[root], following)
    origin = trace.threads[thread]
    lane = len(draft.lanes)
    name = f"{origin.name or 'thread'} {origin.tid}" if is_data.all() else origin.name or f"thread {origin.tid}"
    draft.lanes.append(Lane(name, LaneKind.THREAD, Discipline.ORDER, trace.rank, -1, origin.tid))
    draft.lane_of_thread[thread] = lane
    names = draft.trace_names(events["name"][rows])
    first = len(draft)
    ids = draft.add(
        rows.size,
        kind=np.where(is_data, int(TaskKind.DATA), int(TaskKind.CPU)),
        lane=lane,
        duration_ns=head_end - start,
        gap_ns=np.maximum(limit - head_end, 0),
        gap_level=_gap_levels(parent, root_end, head_end, limit),
        start_ns=start,
        end_ns=end,
        measured_ns=head_end - start,
        name=names,
        operator=names[root],
        parent=np.where(parent >= 0, parent + first, -1),
        detail=events["detail"][rows],
        phase=np.where(is_data, int(Phase.DATA_LOADING), int(Phase.OTHER)),
        row=rows,
        tie=np.arange(rows.size, dtype=np.float64),
    )
    return Timeline(thread, lane, ids, root_end, root)


def _gap_levels(parent: IntArray, end: IntArray, begin: IntArray, limit: IntArray) -> IntArray:
    """How many spans up from each row the one is that goes on longest in [begin, limit); at least 1.

    A gap may hold the tails of several spans: `div` copies a scalar three spans further down and then does its work.
    """
    level = np.ones(parent.size, dtype=np.int64)
    longest = np.zeros(parent.size, dtype=np.int64)
    rows = np.flatnonzero((limit > begin) & (parent >= 0))
    at, since, depth = parent[rows], begin[rows], 1
    while rows.size:
        until = np.minimum(end[at], limit[rows])
        better = until - since > longest[rows]
        longest[rows[better]] = (until - since)[better]
        level[rows[better]] = depth
        since, above, depth = np.maximum(since, until), parent[at], depth + 1
        on = (above >= 0) & (since < limit[rows])
        rows, at, since = rows[on], above[on], since[on]
    return level
