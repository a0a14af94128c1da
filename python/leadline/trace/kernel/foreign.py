"""What others recorded of the kernel (trace-cmd, LTTng, perf), as a profile of its own or added to that of a program.

Alone it is a profile of the machine's threads: how long each ran, and what it waited for. Added to a profile it says
what the program's threads did meanwhile, as `leadline run --os-trace` does. For that the clocks must be related: by the
boot id where the recording has one, and otherwise both must be CLOCK_MONOTONIC and share some time. What cannot be
related is refused, since a shift of seconds would look like any other result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline._dataclass import dataclass, field
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.lineage import clock_of, moved_ns, record_of_rows
from leadline.profiles.meta import is_imported
from leadline.profiles.profile import Profile
from leadline.schema import FrameKind, KernelEventKind, MetricKind
from leadline.trace.importers.meta import imported_meta
from leadline.trace.kernel.attach import with_events
from leadline.trace.kernel.columns import Columns
from leadline.trace.kernel.window import states_of
from leadline.trace.states import State, States
from leadline.trace.tables import TraceError

MONOTONIC = "monotonic"
_CLOCK_NAMES = {"mono": MONOTONIC, "monotonic": MONOTONIC, "CLOCK_MONOTONIC": MONOTONIC}
_MARGIN_NS = 1_000_000_000
"""Of events around a window that are kept, since they say what threads were doing when it opened."""
_WAITS = {
    "lock": ("futex", "futex_waitv", "semop", "semtimedop"),
    "sleep": ("nanosleep", "clock_nanosleep", "pause", "rt_sigtimedwait", "rt_sigsuspend"),
    "child": ("wait4", "waitid", "vfork"),
    "device": ("ioctl",),
}
_STATE_OF_CALL = {call: state for state, calls in _WAITS.items() for call in calls}


@dataclass(frozen=True)
class KernelRecording:
    """Events of one machine since it was started, on one clock.

    `clock`: MONOTONIC, or the recorder's word for another. `realtime_ns`: CLOCK_REALTIME less that clock, None where
    nothing says. `names`: of threads, as far as the recorder knew them beside the events. `lost`: events that are
    missing. `sentences`: what else is.
    """

    source: str
    recorder: str
    events: Columns
    clock: str
    boot_id: str = ""
    host: str = ""
    realtime_ns: int | None = None
    lost: int = 0
    names: Mapping[int, str] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()

    @property
    def span_ns(self) -> tuple[int, int]:
        """From the first event to the last."""
        times = self.events["time_ns"]
        return (int(times[0]), int(times[-1])) if len(times) else (0, 0)

    def about(self, from_ns: int, until_ns: int) -> dict[str, Any]:
        """What a profile's `meta["kernel"]` says of it."""
        level = "syscalls" if np.isin(self.events["kind"], [KernelEventKind.SYSCALL_ENTRY]).any() else "sched"
        return {
            "source": self.recorder,
            "level": level,
            "from_ns": from_ns,
            "until_ns": until_ns,
            "lost": self.lost,
            "sentences": list(self.sentences),
        }


def clock_name(said: str) -> str:
    """A recorder's word for a clock; MONOTONIC where it means that."""
    return _CLOCK_NAMES.get(said, said)


def profile_of(recording: KernelRecording) -> Profile:
    """A profile of the machine that was recorded. Raises TraceError where there is nothing in it."""
    if not len(recording.events["time_ns"]):
        raise TraceError(
            f"{recording.source} holds no event of the scheduler; record some, as in trace-cmd record -e sched -C mono "
            "or lttng enable-event -k 'sched_*'"
        )
    begin, end = recording.span_ns
    meta = imported_meta(
        recording.source, recording.recorder, pid=0, rank=-1, origin_ns=begin + (recording.realtime_ns or 0),
        wall_ns=end - begin,
        estimated=f"Made from {recording.recorder}, which records no Python: Python's time is all the time that a "
                  "thread ran.",
    )  # fmt: skip
    clock = {"monotonic_ns": 0, "realtime_ns": recording.realtime_ns or 0, "uncertainty_ns": 0}
    said = {"clock": clock, "boot_id": recording.boot_id, "hostname": recording.host, "clock_name": recording.clock}
    meta["processes"][0] = {**meta["processes"][0], **said}

    def made(states: States | None) -> Profile:
        builder = ProfileBuilder()
        builder.process(f"machine {recording.host}".strip(), pid=0, rank=-1, start_ns=begin, end_ns=end)
        if states is not None:
            _book(builder, states, {**recording.names, **states.names}, end - begin)
        return with_events(Profile(builder.tables(), meta), recording.events, recording.about(begin, end))

    return made(states_of(made(None), every=True))


def joined(profile: Profile, recording: KernelRecording) -> Profile:
    """The profile of a program with what was recorded of the kernel while its window was open. Raises TraceError where
    the clocks of the two cannot be related, or nothing of the window was recorded."""
    if len(profile.table("kernel_events")["time_ns"]):
        raise TraceError(f"the profile has events of the kernel already; those of {recording.source} would count twice")
    process, shift = _relation(profile, recording)
    starts = profile.events["start_ns"]
    if not len(starts):
        raise TraceError("the profile has no trace window to join events of the kernel with")
    ends = starts + np.maximum(profile.events["duration_ns"], 0)
    from_ns, until_ns = int(starts[0]), int(ends.max())
    times = recording.events["time_ns"] + shift
    kept = (times >= from_ns - _MARGIN_NS) & (times <= until_ns + _MARGIN_NS)
    if not ((times >= from_ns) & (times <= until_ns)).any():
        raise TraceError(
            f"{recording.source} shares no time with the profile's window: it was recorded at another time, since "
            "another start of the machine, or on another machine"
        )
    events = {name: values[kept] for name, values in {**recording.events, "time_ns": times}.items()}
    begin, end = (one + shift for one in recording.span_ns)
    return with_events(profile, events, recording.about(max(begin, from_ns), min(end, until_ns)), process)


def _relation(profile: Profile, recording: KernelRecording) -> tuple[int, int]:
    """A row of the profile's processes on the machine that was recorded, and what to add to the recording's times to
    get those of the profile's events."""
    records = record_of_rows(profile)
    boots = [str(record.get("boot_id") or (profile.meta.get("host") or {}).get("boot_id") or "") for record in records]
    of_boot = [row for row, boot in enumerate(boots) if boot and boot == recording.boot_id]
    if recording.boot_id and any(boots) and not of_boot:
        raise TraceError(
            f"{recording.source} is of another machine, or of another start of it (boot id {recording.boot_id}), than "
            "the profile"
        )
    row = of_boot[0] if of_boot else 0
    imported = is_imported(profile.meta)
    if recording.realtime_ns is not None and (imported or recording.clock != MONOTONIC):
        clock = clock_of(records[row])
        if clock is not None:  # both are related to CLOCK_REALTIME
            return row, recording.realtime_ns - clock
    if recording.clock == MONOTONIC and not imported:
        return row, moved_ns(records[row])
    raise TraceError(
        f"{recording.source} was recorded on the clock {recording.clock}, whose relation to the profile's is not "
        "known; record it on CLOCK_MONOTONIC (trace-cmd record -C mono) while `leadline run --trace` runs"
    )


def _book(builder: ProfileBuilder, states: States, names: Mapping[int, str], wall_ns: int) -> None:
    """A thread for every thread that did anything, those that ran longest first, and what each waited for."""
    threads = {tid: states.of(tid) for tid in np.unique(states.tid).tolist()}
    ran = {tid: int(one.duration_ns[one.state == State.RUNNING].sum()) for tid, one in threads.items()}
    count = Counter(names.get(tid, "") for tid in threads)
    for tid in sorted(ran, key=lambda one: (-ran[one], one)):
        name = names.get(tid) or f"thread {tid}"
        name = name if count[name] <= 1 else f"{name} {tid}"  # threads of one name would share a node
        row = builder.thread(0, name, tid=tid, cpu_ns=ran[tid], wall_ns=wall_ns)
        waits: dict[tuple[str, str], int] = {}
        mine = threads[tid]
        columns = (mine.state, mine.other, mine.reason, mine.duration_ns)
        for state, other, call, took in zip(*(column.tolist() for column in columns), strict=True):
            if state in (State.RUNNABLE, State.BLOCKED):
                key = _wait(State(state), names.get(other, f"thread {other}") if other > 0 else "", call)
                waits[key] = waits.get(key, 0) + took
        for (word, said), took in waits.items():
            frame = builder.frame(FrameKind.PHASE, said, detail=json.dumps({"wait": word}))
            builder.add(builder.child(builder.node_of_thread(row), frame), MetricKind.WAIT, took)


def _wait(state: State, who: str, call: str) -> tuple[str, str]:
    """What kind of wait it is (see analysis/waiting.py), and the words for it."""
    if state == State.RUNNABLE:
        return "core", f"could have run, {who} held the CPU" if who else "could have run"
    place = f"in {call}" if call else "blocked"
    kind = _STATE_OF_CALL.get(call, "io" if call else "other")
    return kind, f"{place} until {who} woke it" if who else place
