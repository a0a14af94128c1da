"""How threads hand work to each other: forward and autograd threads take turns, helpers wait for the loop.

Without these edges one "gap" in the main thread hides the whole backward pass, and a faster CPU would gain nothing
there. Python time between outermost operators becomes tasks named `(python)` on the thread that ran it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.whatif.build.cpu import Timeline
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import EdgeType, IntArray, TaskKind
from leadline.whatif.tables import PYTHON

IDLE_NS = 100_000  # a helper thread that pauses longer waits for someone; shorter pauses are its own Python
HAND_OVER_NS = 4_000_000  # from the end of a worker's batch, over its pickling, to the loop's receiving it
_PARALLEL_SHARE = 0.05  # of the tasks that begin inside the other thread's open operators


def connect(draft: Draft, timelines: Sequence[Timeline], main: int) -> None:
    """Add `(python)` tasks and THREAD edges for all threads; `main` is the training loop's row of threads."""
    if not timelines:
        return
    loop = next((item for item in timelines if item.thread == main), max(timelines, key=lambda item: item.ids.size))
    turns: list[Timeline] = []
    helpers: list[Timeline] = []
    for other in timelines:
        if other is not loop:
            process = draft.trace.threads[other.thread].process
            beside = process != draft.trace.threads[loop.thread].process or _runs_in_parallel(draft, loop, other)
            (helpers if beside else turns).append(other)
    _take_turns(draft, [loop, *turns])
    for helper in helpers:
        _follow(draft, helper, [loop, *turns])
    _receive_data(draft, loop, helpers)
    if helpers:
        draft.facts["parallel_threads"] = len(helpers)


def _runs_in_parallel(draft: Draft, loop: Timeline, other: Timeline) -> bool:
    """Whether the threads worked at the same time; threads that take turns never begin inside the other's operator."""
    inside = 0
    for a, b in ((loop, other), (other, loop)):
        start = draft["start_ns"][a.ids]
        roots = np.unique(b.root)
        begin, end = draft["start_ns"][b.ids[roots]], b.root_end_ns[roots]
        at = np.searchsorted(begin, start, side="right") - 1
        inside += int(((at >= 0) & (start < end[np.maximum(at, 0)]) & (start > begin[np.maximum(at, 0)])).sum())
    return inside > _PARALLEL_SHARE * min(loop.ids.size, other.ids.size)


def _take_turns(draft: Draft, timelines: Sequence[Timeline]) -> None:
    """Walk all tasks of threads that take turns in time order; where the thread changes, the work is handed over."""
    ids = np.concatenate([item.ids for item in timelines])
    ends = np.concatenate([item.root_end_ns for item in timelines])
    owner = np.concatenate([np.full(item.ids.size, at) for at, item in enumerate(timelines)])
    order = np.argsort(draft["start_ns"][ids], kind="stable")
    ids, ends, owner = ids[order], ends[order], owner[order]
    start = draft["start_ns"][ids]
    same = owner[1:] == owner[:-1]
    pause = start[1:] - ends[:-1]
    # Python on one thread: between two outermost spans, or before the first
    plain = np.flatnonzero(same & (pause > 0))
    _python(draft, ids[plain], ends[:-1][plain], start[1:][plain])
    _opening(draft, int(ids[0]), int(start[0]) - draft.window_ns[0])
    _closing(draft, ids[-1:], max(int(ends[-1]), int(start[-1])))
    switches = np.flatnonzero(~same)
    if not switches.size:
        return
    before, after = ids[switches], ids[switches + 1]
    # what the giving thread still did until the other began; a giver inside an operator is cut short there
    cut = start[switches + 1]
    begin = np.minimum(np.maximum(ends[switches], draft["start_ns"][before]), cut)
    _cut_short(draft, before, cut)
    given = _python(draft, before, begin, cut)
    draft.edges(given, after, EdgeType.THREAD, np.zeros(given.size, dtype=np.int64))


def _cut_short(draft: Draft, tasks: IntArray, until_ns: IntArray) -> None:
    """Let tasks and their gaps end where another thread takes over; the rest of the time was waiting."""
    start = draft["start_ns"][tasks]
    room = np.maximum(until_ns - start, 0)
    duration = np.minimum(draft["duration_ns"][tasks], room)
    draft["duration_ns"][tasks] = duration
    draft["measured_ns"][tasks] = np.minimum(draft["measured_ns"][tasks], duration)
    draft["gap_ns"][tasks] = np.minimum(draft["gap_ns"][tasks], room - duration)


def _follow(draft: Draft, helper: Timeline, leaders: Sequence[Timeline]) -> None:
    """A thread beside the loop: its longer pauses end because the loop did something, its first task too."""
    ids = np.concatenate([item.ids for item in leaders])
    done = draft["start_ns"][ids] + draft["duration_ns"][ids]
    order = np.argsort(done, kind="stable")
    ids, done = ids[order], done[order]
    start, ends = draft["start_ns"][helper.ids], helper.root_end_ns
    pause = start[1:] - ends[:-1]
    own = np.flatnonzero((pause > 0) & (pause <= IDLE_NS))
    _python(draft, helper.ids[own], ends[:-1][own], start[1:][own])
    woken = np.concatenate(([0], np.flatnonzero(pause > IDLE_NS) + 1))
    at = np.searchsorted(done, start[woken], side="right") - 1
    early = woken[at < 0]
    draft["not_before_ns"][helper.ids[early]] = start[early]
    woken, at = woken[at >= 0], at[at >= 0]
    draft.edges(ids[at], helper.ids[woken], EdgeType.THREAD, start[woken] - done[at])


def _receive_data(draft: Draft, loop: Timeline, helpers: Sequence[Timeline]) -> None:
    """Data loading in the loop's thread ends because a worker or pinning thread finished a batch: what was waiting for
    it becomes an edge, and only the rest stays as duration."""
    waiting = loop.ids[draft["kind"][loop.ids] == TaskKind.DATA]
    if not waiting.size or not helpers:
        return
    ids = np.concatenate([item.ids for item in helpers])
    done = np.concatenate([item.root_end_ns for item in helpers])
    order = np.argsort(done, kind="stable")
    ids, done = ids[order], done[order]
    begin, end = draft["start_ns"][waiting], draft["start_ns"][waiting] + draft["duration_ns"][waiting]
    at = np.searchsorted(done, end, side="right") - 1
    handed = (at >= 0) & (done[np.maximum(at, 0)] > begin) & (end - done[np.maximum(at, 0)] <= HAND_OVER_NS)
    receiving, at = waiting[handed], at[handed]
    draft["duration_ns"][receiving] = end[handed] - done[at]
    last = ids[at]
    behind = done[at] - (draft["start_ns"][last] + draft["duration_ns"][last])
    draft.edges(last, receiving, EdgeType.DATA, np.maximum(behind, 0))


def _opening(draft: Draft, first: int, duration_ns: int) -> None:
    """Python between the window's start and the first task; on other ranks than the first to start, it starts late."""
    draft.add(
        1, kind=int(TaskKind.CPU), lane=draft["lane"][first], duration_ns=duration_ns, start_ns=draft.window_ns[0],
        end_ns=draft.window_ns[0] + duration_ns, measured_ns=duration_ns, name=draft.name_id(PYTHON), tie=-1.0,
        not_before_ns=draft.window_ns[0],
    )  # fmt: skip


def _closing(draft: Draft, last: IntArray, end_ns: int) -> None:
    """Python between the last task and the end of the last step, which is as much of that step as of any other."""
    if draft.has_steps and end_ns < draft.window_ns[1]:
        _python(draft, last, np.array([end_ns]), np.array([draft.window_ns[1]]))


def _python(draft: Draft, after: IntArray, begin_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Python tasks on the lanes of `after`, directly behind them."""
    return draft.add(
        after.size,
        kind=int(TaskKind.CPU),
        lane=draft["lane"][after],
        duration_ns=end_ns - begin_ns,
        start_ns=begin_ns,
        end_ns=end_ns,
        measured_ns=end_ns - begin_ns,
        name=draft.name_id(PYTHON),
        tie=draft["tie"][after] + 0.5,
    )
