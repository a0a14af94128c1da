"""Device work that started later than its stream, its launch and all known waits allow, and what it waited for.

Work of another stream that ended just then is taken as awaited. Where another stream kept the device busy all the time,
the work waited for room on it: that time becomes a task of its own, so that it shrinks when the device becomes faster.
What is left has no known reason; it stays in the latency and is counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from leadline.units import duration, percent
from leadline.whatif.build.device import TOLERANCE_NS, Stream, Timing, put_in_front
from leadline.whatif.build.draft import Draft
from leadline.whatif.build.waits import CLOSE_NS
from leadline.whatif.kinds import EdgeType, IntArray, TaskKind
from leadline.whatif.tables import CROWDED

_FULL_SHARE = 0.95  # of the late time that kernels of another stream must cover


def explain(draft: Draft, streams: Sequence[Stream], timing: Timing) -> None:
    """Find reasons for `timing.suspicious` and enter them into the draft."""
    inferred = 0
    crowded: list[tuple[int, int, int]] = []
    for task, before, late in timing.suspicious:
        awaited = _ended_just_then(draft, streams, task)
        if awaited >= 0:
            inferred += 1
            behind = int(draft["start_ns"][task]) - int(draft["end_ns"][awaited])
            draft.edge(awaited, task, EdgeType.GUESSED, max(behind, 0))
            _forgive(draft, timing, task, before, late)
        elif _device_was_full(draft, streams, task, late):
            crowded.append((task, before, late))
        else:
            draft.unexplained_ns += late
    if inferred:
        draft.warnings.append(f"{inferred} waits between streams are inferred from observed times only")
    if crowded:
        _wait_for_room(draft, streams, timing, crowded)


def _forgive(draft: Draft, timing: Timing, task: int, before: int, late: int) -> None:
    """Take the late time out of the gap or the latency that holds it."""
    if before >= 0:
        draft["gap_ns"][before] = min(timing.usual_gap_ns, int(draft["gap_ns"][before]))
    else:
        timing.latency_ns[task] -= late


def _ended_just_then(draft: Draft, streams: Sequence[Stream], task: int) -> int:
    """The task of another stream, issued before, that ended last and right before this one began; -1 for none."""
    start, lane = int(draft["start_ns"][task]), int(draft["lane"][task])
    issued = int(draft["start_ns"][draft["parent"][task]])
    best, best_end = -1, start - CLOSE_NS
    for stream in streams:
        place = stream.issued_before(issued)
        if stream.lane == lane or place < 0:
            continue
        at = stream.ended_by(start + TOLERANCE_NS, place)
        if at >= 0 and best_end < int(draft["end_ns"][stream.ids[at]]) <= start + TOLERANCE_NS:
            best, best_end = int(stream.ids[at]), int(draft["end_ns"][stream.ids[at]])
    return best


def _device_was_full(draft: Draft, streams: Sequence[Stream], task: int, late: int) -> bool:
    """Whether kernels of one other stream of the device covered nearly all of the late time."""
    until, lane = int(draft["start_ns"][task]), int(draft["lane"][task])
    device = draft.lanes[lane].device
    for stream in streams:
        if stream.lane == lane or stream.device != device:
            continue
        first = bisect_right(stream.drained, until - late)
        last = bisect_left(stream.ids, until, key=lambda other: int(draft["start_ns"][other]))
        inside: IntArray = stream.ids[first:last]
        inside = inside[draft["kind"][inside] == TaskKind.GPU]
        begin, end = np.maximum(draft["start_ns"][inside], until - late), np.minimum(draft["end_ns"][inside], until)
        if int(np.maximum(end - begin, 0).sum()) >= _FULL_SHARE * late:
            return True
    return False


def _wait_for_room(
    draft: Draft, streams: Sequence[Stream], timing: Timing, crowded: Sequence[tuple[int, int, int]]
) -> None:
    """A device task as long as the wait in front of each task that waited."""
    tasks, before, late = (np.array(column, dtype=np.int64) for column in zip(*crowded, strict=True))
    end = draft["start_ns"][tasks]
    added = draft.add(
        tasks.size, kind=int(TaskKind.GPU), lane=draft["lane"][tasks], duration_ns=late, start_ns=end - late,
        end_ns=end, measured_ns=late, name=draft.name_id(CROWDED), parent=draft["parent"][tasks],
        tie=draft["tie"][tasks] - 0.5,
    )  # fmt: skip
    for task, new, previous, waited in zip(tasks.tolist(), added.tolist(), before.tolist(), late.tolist(), strict=True):
        if previous >= 0:
            draft["gap_ns"][previous] -= waited
            timing.latency_ns[new] = timing.latency_ns[task]
        else:
            timing.latency_ns[task] -= waited
            timing.latency_ns[new] = timing.latency_ns[task]
    put_in_front(draft, streams, dict(zip(tasks.tolist(), added.tolist(), strict=True)))
    total = int(late.sum())
    share = total / max(draft.window_ns[1] - draft.window_ns[0], 1)
    draft.warnings.append(
        f"{tasks.size} device tasks started {duration(total)} late in all ({percent(share)} of the "
        "window) while another "
        f"stream kept the device busy; the time counts as device work named {CROWDED!r}"
    )
