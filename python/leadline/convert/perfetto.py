"""The trace window as a Perfetto timeline: a process per process, a track per thread and per stream of a device.

Spans of a thread that overlap without nesting go to further tracks of that thread. Arrows lead from a launch to its
device work, and amounts (what tensors hold, what allocators say) are counters of their process. Where the kernel was
recorded on the one machine, its switches and wakings are there too, and threads keep their own numbers, so that
Perfetto shows their states. Processes of several machines are related by CLOCK_REALTIME; the timeline begins with the
first event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.window import machines, program_lines, window_traces
from leadline.profiles import Profile
from leadline.schema import KernelEventKind
from leadline.trace.counters import Series, series
from leadline.trace.lanes import Rows, lanes
from leadline.trace.perfetto import PerfettoWriter, Spans, Texts, switched, woken
from leadline.trace.states import thread_names
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Kind, Trace

_CORRELATION_BITS = 48
_POINTS = (Kind.ALLOCATE,)  # events that show an amount, not a stretch of time
_KINDS = [kind.name.lower() for kind in Kind]
_MOST_NS = 1 << 62
_UNSEEN = (1 << 31) - 2  # no thread has this number


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; a window has no metrics to choose from."""
    traces = window_traces(profile, request)
    found = machines(profile, traces)
    timeline = Timeline(profile, min(trace.origin_ns for trace in traces))
    timeline.write(sink.write, traces, found[0].processes if len(found) == 1 else frozenset())


class Timeline:
    """Writes windows of a profile that share the time 0 `begin_ns` (CLOCK_REALTIME)."""

    def __init__(self, profile: Profile, begin_ns: int) -> None:
        labels, codes = np.unique(np.array(program_lines(profile), dtype=object), return_inverse=True)
        self._lines = Texts(np.where(labels[codes] == "", -1, codes).astype(np.int64), labels.tolist())
        self._profile = profile
        self._begin_ns = begin_ns

    def write(self, write: Callable[[bytes], object], traces: Sequence[Trace], processes: frozenset[int]) -> None:
        """One file of these traces, with what the kernel did where it was recorded on the machine of `processes`."""
        writer = PerfettoWriter(write)
        amounts = series(self._profile)
        seen = bool(np.isin(self._profile.table("kernel_events")["process"], list(processes)).any())
        for trace in traces:
            shift_ns = trace.origin_ns - self._begin_ns
            numbers = _trace(writer, self._profile, trace, shift_ns, self._lines, real=seen)
            _counters(writer, self._profile, amounts, numbers, shift_ns - int(trace.facts["begin_ns"]))
        if seen:
            zero = int(traces[0].facts["begin_ns"]) - traces[0].origin_ns + self._begin_ns
            _kernel(writer, self._profile, zero, processes)


def _trace(
    writer: PerfettoWriter, profile: Profile, trace: Trace, shift_ns: int, lines: Texts, *, real: bool
) -> dict[int, int]:
    """The processes of one trace: the one it is of, and those that joined it. `real`: under their own numbers. Gives
    their numbers in the file by row."""
    made: dict[int, int] = {}
    processes = {thread.process for thread in trace.threads} or {-1}
    arrows = launch_numbers(trace)
    device_owner = next((row for row in sorted(processes, key=str) if isinstance(row, int)), -1)
    for process in sorted(processes, key=str):
        record = profile.processes[process] if isinstance(process, int) and process >= 0 else None
        rank = f"rank {record.rank} " if record and record.rank >= 0 else ""
        title = f"{rank}{record.name} ({record.pid})" if record else "process"
        number = writer.process(title, record.pid if real and record else None)
        if isinstance(process, int):
            made[process] = number
        made_here = 0
        for name, tid, rows in tracks(trace, process, with_devices=process == device_owner):
            found, _ = lanes(rows, trace.events["start_ns"][rows], np.minimum(trace.end_ns[rows], _MOST_NS))
            for part, lane in enumerate(found):
                made_here += 1
                own = tid if real and tid and not part else (made_here << 24 if real else made_here)
                track = writer.track(number, own, f"{name} (overlapping {part})" if part else name)
                at = lane.rows
                leaves, arrives = _flows(trace, arrows, at, number)
                kinds = trace.events["kind"][at].astype(np.int64)
                moved = lane.later(shift_ns)
                writer.slices(
                    track,
                    Spans(
                        moved,
                        Texts(trace.events["name"][at].astype(np.int64), trace.strings),
                        Texts(np.where(kinds < len(_KINDS), kinds, -1), _KINDS),
                        {"at": Texts(lines.codes[trace.events["node"][at]], lines.labels)},
                        {"bytes": trace.events["bytes"][at].astype(np.int64)},
                        leaves=leaves,
                        arrives=arrives,
                    ),
                )
    return made


def launch_numbers(trace: Trace) -> Rows:
    """For every event the number by which an arrow joins it with others, 0 for none; empty where none has one."""
    joined = trace.events["correlation"].astype(np.int64)
    calls = np.isin(trace.events["kind"], [int(kind) for kind in CALL_KINDS]) & (joined != 0)
    if not calls.any():
        return joined[:0]
    known = np.isin(joined, np.unique(joined[calls])) & (joined != 0)
    return np.where(known, joined & (1 << _CORRELATION_BITS) - 1, 0)


def _flows(
    trace: Trace, arrows: Rows, at: Rows, process: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | tuple[None, None]:
    """Of events the arrows that leave them and those that arrive."""
    if not arrows.size:
        return None, None
    flow = np.where(arrows[at] != 0, process << _CORRELATION_BITS | arrows[at], 0)
    on_device = trace.events["thread"][at] < 0
    return np.where(on_device, 0, flow).astype(np.uint64), np.where(on_device, flow, 0).astype(np.uint64)


def _counters(
    writer: PerfettoWriter, profile: Profile, amounts: Sequence[Series], numbers: Mapping[int, int], shift_ns: int
) -> None:
    """What the processes of a trace hold over time. `shift_ns`: to the timeline's times."""
    for one in amounts:
        if one.process in numbers:
            where = f" of GPU {profile.devices[one.device].index}" if 0 <= one.device < len(profile.devices) else ""
            times = one.time_ns + shift_ns
            writer.counter(numbers[one.process], f"{one.name}{where}", times, one.values, in_bytes=one.in_bytes)


def tracks(trace: Trace, process: int | str, *, with_devices: bool) -> Iterator[tuple[str, int, Rows]]:
    """Title, number and rows of every thread of a process, and of every stream of its devices (number 0)."""
    events = trace.events
    spans = ~np.isin(events["kind"], [int(kind) for kind in _POINTS])
    for at, thread in enumerate(trace.threads):
        if thread.process == process:
            yield thread.name or f"thread {thread.tid}", thread.tid, np.flatnonzero(spans & (events["thread"] == at))
    if not with_devices:
        return
    on_device = np.isin(events["kind"], [int(kind) for kind in DEVICE_KINDS]) & (events["thread"] < 0)
    places = set(zip(events["device"][on_device].tolist(), events["stream"][on_device].tolist(), strict=True))
    for device, stream in sorted(places):
        rows = np.flatnonzero(on_device & (events["device"] == device) & (events["stream"] == stream))
        yield f"GPU {device} stream {stream}", 0, rows


def _without_gaps(events: Mapping[str, NDArray[Any]], own: list[int]) -> dict[str, NDArray[Any]]:
    """The events of a recording that followed the threads `own`, so that every switch takes the CPU from whom the one
    before gave it: between others run that nobody recorded, under a name of their own."""
    found = {name: events[name].astype(np.int64) for name in ("cpu", "time_ns", "kind", "tid", "target", "value")}
    switches = np.flatnonzero(found["kind"] == KernelEventKind.SWITCH)
    switches = switches[np.argsort(found["cpu"][switches], kind="stable")]
    before, after = switches[:-1], switches[1:]
    gap = (found["cpu"][before] == found["cpu"][after]) & (found["target"][before] != found["tid"][after])
    before, after = before[gap], after[gap]
    mine = np.isin(found["target"][before], own)  # then its leaving was lost
    begins = before[~mine]
    gone = {"target": np.full(begins.size, _UNSEEN), "tid": found["target"][begins], "value": np.ones(begins.size)}
    came = {
        "target": found["tid"][after],
        "tid": np.where(mine, found["target"][before], _UNSEEN),
        "value": np.zeros(after.size),
    }
    place = np.argsort(np.concatenate([np.arange(len(found["kind"])), begins + 0.5, after - 0.5]), kind="stable")
    return {
        name: np.concatenate([values, gone.get(name, values[begins]), came.get(name, values[after])]).astype(np.int64)[
            place
        ]
        for name, values in found.items()
    }


def _kernel(writer: PerfettoWriter, profile: Profile, begin_ns: int, processes: frozenset[int]) -> None:
    """Switches and wakings of the machine of these processes, CPU by CPU. `begin_ns`: time 0 of the timeline on the
    clock of the events."""
    events = profile.table("kernel_events")
    mine = np.isin(events["process"], list(processes))
    events = {name: values[mine] for name, values in events.items()}
    text = profile.tables.strings
    names = {**thread_names(events, text), 0: "swapper", _UNSEEN: "others (not recorded)"}
    wanted = np.isin(events["kind"], [KernelEventKind.SWITCH, KernelEventKind.WAKING]) & (events["time_ns"] >= begin_ns)
    own = [thread.tid for thread in profile.threads if thread.process in processes]
    events = _without_gaps({name: values[wanted] for name, values in events.items()}, own)
    rows = np.arange(events["time_ns"].size)
    code = np.zeros(rows.size, dtype=np.int64)
    for name in ("kind", "tid", "target", "value"):
        values, number = np.unique(events[name][rows], return_inverse=True)
        _, code = np.unique(code * len(values) + number.ravel(), return_inverse=True)
    _, first = np.unique(code, return_index=True)
    bodies = []
    for kind, tid, target, value in zip(
        *(events[name][rows[first]].tolist() for name in ("kind", "tid", "target", "value")), strict=True
    ):
        came = (names.get(target, ""), target)
        if kind == KernelEventKind.SWITCH:
            bodies.append(switched((names.get(tid, ""), tid), value, came))
        else:
            bodies.append(woken(tid, came, value))
    writer.kernel()
    for cpu in np.unique(events["cpu"][rows]).tolist():
        mine = events["cpu"][rows] == cpu
        writer.switches(cpu, events["time_ns"][rows[mine]] - begin_ns, code[mine], bodies)
