"""One program out of a trace: two training loops in one file are two programs, or two ranks, and no mean of both is the
step of either."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import replace
from leadline.steps.names import is_optimizer_step
from leadline.steps.of_events import main_thread
from leadline.trace.tables import Kind, Trace


def one_loop(trace: Trace) -> Trace:
    """The trace without the events of other processes that run a training loop of their own, and a warning about it;
    the trace itself where there is none. Processes without a loop, such as those of a loader, stay."""
    loops = _loops(trace)
    thread = main_thread(trace)
    if len(loops) < 2 or thread < 0:
        return trace
    followed = trace.threads[thread].process
    foreign = np.array(
        [other.process in loops and other.process != followed for other in trace.threads], dtype=np.bool_
    )
    events = trace.events
    on_cpu = events["thread"] >= 0
    gone = on_cpu & foreign[np.where(on_cpu, events["thread"], 0)]
    # device work goes with the call that launched it; numbers that both programs gave cannot be told apart
    numbered = events["correlation"] > 0
    theirs = np.setdiff1d(events["correlation"][gone & numbered], events["correlation"][on_cpu & ~gone & numbered])
    gone |= ~on_cpu & np.isin(events["correlation"], theirs)
    kept = np.flatnonzero(~gone)
    used = set(np.unique(events["name"][kept]).tolist())
    note = (
        f"{len(loops)} processes of this trace run a training loop: they are two programs, or ranks in one file. Only "
        f"process {followed} is analysed and the others are left out; give each its own trace"
    )
    return replace(
        trace,
        events={name: values[kept] for name, values in events.items()},
        strings=[text if row in used else "" for row, text in enumerate(trace.strings)],
        flows=[flow for flow in trace.flows if not (foreign[flow.forward_thread] or foreign[flow.backward_thread])],
        warnings=(*trace.warnings, note),
    )


def _loops(trace: Trace) -> set[int | str]:
    """Processes with step marks, or with optimizer marks."""
    rows = trace.of_kind(Kind.STEP, Kind.REGION)
    updates = np.array([is_optimizer_step(name) for name in trace.strings], dtype=np.bool_)
    marks = (trace.events["kind"][rows] == Kind.STEP) | updates[trace.events["name"][rows]]
    threads = trace.events["thread"][rows[marks]]
    return {trace.threads[row].process for row in np.unique(threads[threads >= 0]).tolist()}
