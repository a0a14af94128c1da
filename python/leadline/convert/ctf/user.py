"""The trace window of a machine in LTTng-UST's layout: a stream per thread and per queue of a device.

A span is two events, `leadline:KIND_begin` with all its fields and `leadline:KIND_end` with its name; spans that
overlap without nesting have another `lane`. Contexts are LTTng's (`vpid`, `vtid`), and a thread's name comes in the
event that LTTng has for it, so that the viewers' own analyses know whom they look at.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline._version import __version__
from leadline.convert.ctf import allocators
from leadline.convert.ctf.layout import (
    Batch,
    Clock,
    EventClass,
    Fields,
    Integer,
    Layout,
    Stream,
    StreamClass,
    Text,
    smallest,
)
from leadline.convert.window import Machine
from leadline.profiles import Profile
from leadline.schema import LossKind
from leadline.trace.counters import Series
from leadline.trace.lanes import Lane, Rows, lanes
from leadline.trace.tables import CALL_KINDS, Kind, Trace

THREADS, QUEUES = 0, 1
PROCNAME = "lttng_ust_statedump:procname"
_NAME_BYTES = 17  # of a thread's name, as in LTTng
_UNNAMED, _NO_LINE = "(no name)", "(outside Python)"  # babeltrace2 refuses empty labels of CTF 2
_LOST = (LossKind.EVENTS_DROPPED, LossKind.GPU_RECORDS_DROPPED)


@dataclass(frozen=True)
class _Tables:
    """What the events of all traces are numbered by. `name_of` and `line_of`: label of a trace's string, of a node."""

    names: list[str]
    lines: list[str]
    line_of: NDArray[np.int64]


def user_trace(profile: Profile, machine: Machine, lines: Sequence[str]) -> tuple[Layout, list[Stream]]:
    """The layout of a machine's trace and its streams. `lines`: where in the program each node of the tree stands."""
    line_labels, line_of = np.unique(np.array([line or _NO_LINE for line in lines], dtype=object), return_inverse=True)
    names: dict[str, int] = {}
    name_of = [_labels(trace, names) for trace in machine.traces]
    tables = _Tables(list(names), [str(line) for line in line_labels], line_of.astype(np.int64))
    amounts = allocators.amounts(profile, machine)
    layout = _layout(profile, machine, tables, amounts)
    streams: list[Stream] = []
    lost = _lost_by_process(profile)
    for trace, labels in zip(machine.traces, name_of, strict=True):
        maker = _Maker(profile, layout, trace, machine.monotonic_ns(trace), labels, tables)
        streams += maker.streams(lost)
    if amounts:
        streams += allocators.streams(profile, machine, amounts, layout.streams[allocators.ALLOCATORS])
    return layout, streams


def _labels(trace: Trace, names: dict[str, int]) -> NDArray[np.int64]:
    """For every string of a trace its label among `names`, which grows; -1 for those that no event has."""
    found = np.full(len(trace.strings), -1, dtype=np.int64)
    for row in np.unique(trace.events["name"]).tolist():
        found[row] = names.setdefault(trace.strings[row] or _UNNAMED, len(names))
    return found


def _lost_by_process(profile: Profile) -> dict[int, int]:
    lost: dict[int, int] = {}
    for loss in profile.losses:
        if loss.kind in _LOST:
            lost[loss.process] = lost.get(loss.process, 0) + loss.count
    return lost


def _layout(profile: Profile, machine: Machine, tables: _Tables, amounts: Sequence[Series]) -> Layout:
    threaded, queued = (_kinds(machine.traces, on_device=on_device) for on_device in (False, True))
    name = smallest(len(tables.names), "names")
    line = smallest(len(tables.lines), "lines")
    on_threads: list[EventClass] = [
        EventClass(PROCNAME, {"procname": Text(_NAME_BYTES)}),
        EventClass(
            "leadline:allocate", {"bytes": Integer(64, True), "device": Integer(32, True), "total": Integer(64, True)}
        ),
    ]
    on_queues: list[EventClass] = []
    for kind in threaded:
        fields: dict[str, Any] = {"name": name, "at": line, "step": Integer(32, True)}
        if kind == Kind.OPERATOR:
            fields["sequence"] = Integer(64, True)
        if kind in CALL_KINDS:
            fields["correlation"] = Integer(64)
        on_threads += _begin_and_end(kind, fields)
    for kind in queued:
        fields = {"name": name, "step": Integer(32, True), "correlation": Integer(64), "bytes": Integer(64, True)}
        on_queues += _begin_and_end(kind, fields)
    thread: Fields = {"vpid": Integer(32, True), "vtid": Integer(32, True), "lane": Integer(8)}
    queue: Fields = {
        "vpid": Integer(32, True),
        "device": Integer(32, True),
        "queue": Integer(32, True),
        "lane": Integer(8),
    }
    return Layout(
        uuid=uuid.uuid5(machine.boot, f"user {profile.meta.get('started_at_ns')}"),
        clock=Clock(machine.boot, machine.offset_ns or 0),
        environment=_environment(profile, machine),
        streams=(
            StreamClass("threads", thread, on_threads),
            StreamClass("queues", queue, on_queues),
            *([allocators.stream_class(amounts)] if amounts else []),
        ),
        labels={"names": tables.names, "lines": tables.lines}
        | ({allocators.LABELS: allocators.names(amounts)} if amounts else {}),
    )


def _kinds(traces: Sequence[Trace], *, on_device: bool) -> list[int]:
    """Kinds of the spans on threads, or on devices."""
    found: set[int] = set()
    for trace in traces:
        there = (trace.events["thread"] < 0) == on_device
        found.update(np.unique(trace.events["kind"][there & (trace.events["kind"] != Kind.ALLOCATE)]).tolist())
    return sorted(found)


def _begin_and_end(kind: int, fields: Fields) -> list[EventClass]:
    word = kind_word(kind)
    return [EventClass(f"leadline:{word}_begin", fields), EventClass(f"leadline:{word}_end", {"name": fields["name"]})]


def kind_word(kind: int) -> str:
    """The kind of an event as a part of its name."""
    return Kind(kind).name.lower() if kind in set(Kind) else f"kind_{kind}"


def _environment(profile: Profile, machine: Machine) -> dict[str, str | int]:
    losses = "; ".join(f"{loss.count} {str(loss.kind).replace('_', ' ')}" for loss in profile.losses)
    return {
        "hostname": machine.name,
        "domain": "ust",
        "tracer_name": "lttng-ust",
        "tracer_major": 2,
        "tracer_minor": 13,
        "tracer_buffering_scheme": "uid",
        "tracer_buffering_id": 0,
        "architecture_bit_width": 64,
        "trace_name": "leadline",
        "leadline": __version__,
        "leadline_losses": losses,
        "leadline_clock": "measured" if machine.offset_ns is not None else "the wall clock of this trace is not known",
    }


@dataclass(frozen=True)
class _Maker:
    """Streams of one trace. `shift_ns`: CLOCK_MONOTONIC at its time 0."""

    profile: Profile
    layout: Layout
    trace: Trace
    shift_ns: int
    name_of: NDArray[np.int64]
    tables: _Tables

    def streams(self, lost: dict[int, int]) -> Iterator[Stream]:
        """`lost`: events that are missing, by process; each is told once and taken out."""
        events = self.trace.events
        spans = events["kind"] != Kind.ALLOCATE
        for row, thread in enumerate(self.trace.threads):
            mine = events["thread"] == row
            points = np.flatnonzero(mine & ~spans)
            process = thread.process if isinstance(thread.process, int) else -1
            context = {"vpid": self._pid(process), "vtid": _int32(thread.tid)}
            name = thread.name or f"thread {thread.tid}"
            for number, lane in enumerate(self._lanes(np.flatnonzero(mine & spans))):
                if not lane.rows.size and not points.size:
                    continue
                batches = self._batches(
                    THREADS, lane, {**context, "lane": number}, points if number == 0 else points[:0], name
                )
                title = f"thread_{process}_{thread.tid}_{number}"
                yield Stream(title, THREADS, -1, batches, lost.pop(process, 0) if number == 0 else 0)
        on_device = (events["thread"] < 0) & spans
        places = set(zip(events["device"][on_device].tolist(), events["stream"][on_device].tolist(), strict=True))
        process = int(self.trace.facts["process"])
        for device, queue in sorted(places):
            rows = np.flatnonzero(on_device & (events["device"] == device) & (events["stream"] == queue))
            for number, lane in enumerate(self._lanes(rows)):
                context = {"vpid": self._pid(process), "device": device, "queue": queue, "lane": number}
                batches = self._batches(QUEUES, lane, context, rows[:0], "")
                yield Stream(f"device_{process}_{device}_{queue}_{number}", QUEUES, -1, batches)

    def _pid(self, process: int) -> int:
        return _int32(self.profile.processes[process].pid) if process >= 0 else 0

    def _lanes(self, rows: Rows) -> list[Lane]:
        return lanes(rows, self.trace.events["start_ns"][rows], self.trace.end_ns[rows])[0]

    def _batches(self, stream: int, lane: Lane, context: Mapping[str, int], points: Rows, title: str) -> list[Batch]:
        """The events of a lane, the allocations among them, and before all the thread's name where it has one."""
        kinds = self.layout.streams[stream]
        number_of = {event.name: number for number, event in enumerate(kinds.events)}
        named = int(bool(title))
        begins, ends = lane.places
        point_ns = self.trace.events["start_ns"][points]
        in_order = np.empty(2 * lane.rows.size, dtype=np.int64)
        in_order[begins], in_order[ends] = lane.start_ns, lane.end_ns
        moved = np.arange(in_order.size) + np.searchsorted(point_ns, in_order, side="left") + named
        batches: list[Batch] = []

        def add(event: str, places: Rows, times: Rows, columns: Mapping[str, Any]) -> None:
            number = number_of[event]
            records = np.zeros(places.size, dtype=kinds.record(kinds.events[number]))
            records["id"], records["timestamp"] = number, times + self.shift_ns
            for name, value in (*context.items(), *columns.items()):
                records[name] = value
            batches.append(Batch(places, records))

        if named:
            first = min([*in_order[:1].tolist(), *point_ns[:1].tolist()])
            add(PROCNAME, np.zeros(1, np.int64), np.array([first]), {"procname": title.encode()[: _NAME_BYTES - 1]})
        if points.size:
            places = np.arange(points.size) + np.searchsorted(in_order, point_ns, side="right") + named
            add("leadline:allocate", places, point_ns, self._allocations(points))
        kind_of = self.trace.events["kind"][lane.rows]
        for kind in np.unique(kind_of).tolist():
            mine = kind_of == kind
            rows, word = lane.rows[mine], kind_word(kind)
            fields = kinds.events[number_of[f"leadline:{word}_begin"]].fields
            columns = {name: self._column(name, rows) for name in fields}
            add(f"leadline:{word}_begin", moved[begins[mine]], lane.start_ns[mine], columns)
            add(f"leadline:{word}_end", moved[ends[mine]], lane.end_ns[mine], {"name": columns["name"]})
        return batches

    def _column(self, name: str, rows: Rows) -> NDArray[Any]:
        events = self.trace.events
        found: NDArray[Any] = events[name][rows] if name not in ("name", "at") else events["node"][rows]
        if name == "name":
            found = self.name_of[events["name"][rows]]
        elif name == "at":
            found = self.tables.line_of[found]
        return found

    def _allocations(self, rows: Rows) -> dict[str, NDArray[np.int64]]:
        """What was allocated and released, and how the total of its device has changed since the window began."""
        size, device = self.trace.events["bytes"][rows], self.trace.events["device"][rows]
        return {"bytes": size, "device": device, "total": _totals(self.trace)[rows]}


def _int32(number: int) -> int:
    """A number of a process or thread as a field of 32 bits, whatever a damaged file holds."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _totals(trace: Trace) -> NDArray[np.int64]:
    """For every allocation of a trace the change of its device's live bytes since the window began, itself included."""
    totals = np.zeros(len(trace), dtype=np.int64)
    rows = trace.of_kind(Kind.ALLOCATE)
    for device in np.unique(trace.events["device"][rows]).tolist():
        mine = rows[trace.events["device"][rows] == device]
        totals[mine] = np.cumsum(trace.events["bytes"][mine])
    return totals
