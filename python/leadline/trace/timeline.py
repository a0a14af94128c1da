"""The steps of a trace window as rows: every phase of every thread in every step, with what the thread did then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.profile import Profile
from leadline.steps import Step
from leadline.steps.of_events import find_steps, main_thread
from leadline.trace.intervals import union
from leadline.trace.kernel.window import recorded, states_of
from leadline.trace.profile_window import read_profile
from leadline.trace.tables import Kind, Thread, Trace
from leadline.trace.waits import Spent, ThreadTime

WHOLE = "step"
BETWEEN = "between phases"
OPERATORS = "operators"
"""What a thread without phases did: one of a framework's pool, to which work is handed."""


@dataclass(frozen=True)
class Row:
    """A phase of a thread in a step, or the whole step of the thread that runs the loop. Times are ns on the clock of
    the trace; `spent` is None where the kernel was not recorded."""

    rank: int
    step: int
    thread: Thread
    phase: str
    start_ns: int
    wall_ns: int
    spent: Spent | None


@dataclass(frozen=True)
class Timeline:
    """A trace with its steps and rows; `times`: what every thread (row of the trace) did, empty without kernel."""

    trace: Trace
    steps: Sequence[Step]
    doubt: str
    rows: Sequence[Row]
    times: dict[int, ThreadTime]
    shift_ns: int
    """What to add to a time of the trace to get the clock of the profile's events."""


def timelines(profile: Profile, source: str = "", *, kernel: bool = True) -> list[Timeline]:
    """One per process that runs a loop; without `kernel` nothing of what threads did. Raises TraceError where the
    profile has no trace window."""
    states = states_of(profile) if kernel and len(profile.table("kernel_events")["time_ns"]) else None
    found = []
    for trace in read_profile(profile, source):
        shift = int(trace.facts["begin_ns"])
        times = {}
        if states is not None:
            times = {row: ThreadTime(states.of(thread.tid)) for row, thread in enumerate(trace.threads)}
        steps = find_steps(trace)
        rows = [row for step in steps.steps for row in _rows(trace, step, times, shift)]
        found.append(Timeline(trace, steps.steps, steps.doubt, rows, times, shift))
    return found


def _rows(trace: Trace, step: Step, times: dict[int, ThreadTime], shift: int) -> Iterator[Row]:
    events = trace.events
    begin, end = step.start_ns, step.end_ns
    phases = trace.of_kind(Kind.PHASE)
    phases = phases[(events["start_ns"][phases] < end) & (trace.end_ns[phases] > begin)]
    main = main_thread(trace)
    if main >= 0:
        yield _row(trace, step, main, WHOLE, np.array([begin]), np.array([end]), times, shift)
    for thread in [main, *(row for row in range(len(trace.threads)) if row != main)]:
        mine = phases[events["thread"][phases] == thread]
        names = dict.fromkeys(events["name"][mine].tolist())
        if not names and thread != main:
            ran = trace.of_kind(Kind.OPERATOR)
            ran = ran[events["thread"][ran] == thread]
            ran = ran[(events["start_ns"][ran] < end) & (trace.end_ns[ran] > begin)]
            if ran.size:
                low, high = union(np.maximum(events["start_ns"][ran], begin), np.minimum(trace.end_ns[ran], end))
                yield _row(trace, step, thread, OPERATORS, low, high, times, shift)
        for name in names:
            named = mine[events["name"][mine] == name]
            low, high = union(np.maximum(events["start_ns"][named], begin), np.minimum(trace.end_ns[named], end))
            yield _row(trace, step, thread, trace.strings[name], low, high, times, shift)
        if thread == main and names:
            low, high = union(np.maximum(events["start_ns"][mine], begin), np.minimum(trace.end_ns[mine], end))
            gap_low, gap_high = np.concatenate(([begin], high)), np.concatenate((low, [end]))
            between = gap_high > gap_low
            if between.any():
                yield _row(trace, step, thread, BETWEEN, gap_low[between], gap_high[between], times, shift)


def _row(
    trace: Trace,
    step: Step,
    thread: int,
    phase: str,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    times: dict[int, ThreadTime],
    shift: int,
) -> Row:
    spent = times[thread].spent(low + shift, high + shift) if thread in times else None
    wall = int((high - low).sum())
    first = int(low[0]) if low.size else step.start_ns
    return Row(trace.rank, step.number, trace.threads[thread], phase, first, wall, spent)


def kernel_sentence(profile: Profile) -> str:
    """What of the kernel was recorded, or why nothing was."""
    about = recorded(profile)
    if not about:
        return "no kernel events; `leadline run --trace steps=5 --os-trace syscalls` records what threads waited for"
    kinds = {
        "tracefs": f"events ({about.get('level', '')})",
        "perf": "context switches only",
        "counters": "totals only",
    }
    foreign = f"events of {about.get('source')} ({about.get('level')})" if about.get("from_ns") else "nothing"
    parts = [f"kernel: {kinds.get(str(about.get('source')), foreign)}"]
    if about.get("lost"):
        parts.append(f"{about['lost']} events lost")
    return "; ".join([*parts, *map(str, about.get("sentences") or ())])
