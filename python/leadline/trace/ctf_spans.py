"""What a program's CTF trace holds as event tables, one per process: spans of events that begin and end something.

Leadline's own export says kind, name and place of every event and comes back as it was; of other traces a span is a
region that is called after the events' own name, or what a field `name` says.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Any

from leadline._dataclass import dataclass, field, replace
from leadline.trace.ctf import CtfEvent, CtfTrace, Value
from leadline.trace.sqlite_events import EventRows
from leadline.trace.tables import Kind, Thread, Trace, TraceError

_BEGINS = ("begin", "entry", "enter", "start")
_ENDS = ("end", "exit", "leave", "stop")
_OWN = "leadline:"
_OWN_POINT = "leadline:allocate"
_FUNCTION = "lttng_ust_cyg_profile"
_MOST_NAMED = 3


@dataclass
class _Open:
    """A span that has begun."""

    stem: str
    name: str
    begin_ns: int
    kind: int
    values: dict[str, int]


@dataclass
class _Process:
    """What one process did, on its way into a trace."""

    pid: int
    names: dict[int, str] = field(default_factory=dict)
    threads: dict[int, int] = field(default_factory=dict)
    spans: list[tuple[int, int, str, int, dict[str, int]]] = field(default_factory=list)
    open: dict[tuple[int, ...], list[_Open]] = field(default_factory=dict)
    images: list[tuple[int, int, str]] = field(default_factory=list)
    without_begin: int = 0
    last_ns: int = 0


def user_traces(trace: CtfTrace) -> list[Trace]:
    """One per process. Raises TraceError where nothing begins and ends."""
    processes: dict[int, _Process] = {}
    unread: Counter[str] = Counter()
    for event in trace.events():
        pid = _number(event.context, "vpid", "pid", default=_number(event.context, "vtid", "tid", default=0))
        process = processes.setdefault(pid, _Process(pid))
        process.last_ns = max(process.last_ns, event.time_ns)
        if not _take(process, event):
            unread[event.name] += 1
    found = []
    for process in processes.values():
        left_open = _close_all(process)
        if process.spans:
            found.append(_trace(trace, process, unread, left_open))
    if not found:
        names = ", ".join(name for name, _ in unread.most_common(_MOST_NAMED))
        raise TraceError(
            f"{trace.name} holds no pair of events that begin and end something (x_begin and x_end, func_entry and "
            f"func_exit); it has {names or 'no event'}"
        )
    return found


def _take(process: _Process, event: CtfEvent) -> bool:
    """Adds what an event says; whether it says anything."""
    tid = _number(event.context, "vtid", "tid", default=process.pid)
    if isinstance(told := event.context.get("procname") or event.payload.get("procname"), str):
        process.names[tid] = told
    if event.name.endswith(":bin_info"):
        place, size = _number(event.payload, "baddr"), _number(event.payload, "memsz")
        process.images.append((place, place + size, str(event.payload.get("path", ""))))
        return True
    if event.name == _OWN_POINT:
        values = {"bytes": _number(event.payload, "bytes", default=0), "device": _number(event.payload, "device")}
        process.spans.append((event.time_ns, event.time_ns, "allocation", int(Kind.ALLOCATE), {**values, "tid": tid}))
        return True
    stem, _, last = event.name.rpartition("_")
    where = (tid, _number(event.context, "lane", default=0), *_queue(event))
    if last in _BEGINS:
        _begin(process, event, stem, where, tid)
    elif last in _ENDS:
        _end(process, event.time_ns, stem, where)
    else:
        return event.name.startswith("lttng_ust_statedump")
    return True


def _queue(event: CtfEvent) -> tuple[int, ...]:
    device = event.context.get("device")
    return (int(device), _number(event.context, "queue")) if isinstance(device, int) else ()


def _begin(process: _Process, event: CtfEvent, stem: str, place: tuple[int, ...], tid: int) -> None:
    own = stem.removeprefix(_OWN) if stem.startswith(_OWN) else ""
    kind = Kind.__members__.get(own.upper(), Kind.REGION)
    kind = Kind.REGION if kind == Kind.PHASE else kind
    values = {
        name: value for name in ("sequence", "correlation", "bytes") if (value := _number(event.payload, name)) >= 0
    }
    queue = _queue(event)
    values.update({"device": queue[0], "stream": queue[1]} if queue else {"tid": tid})
    said = event.payload.get("name")
    name = said if isinstance(said, str) and said else _function(process, event) or stem
    process.open.setdefault(place, []).append(_Open(stem, name, event.time_ns, int(kind), values))


def _end(process: _Process, time_ns: int, stem: str, place: tuple[int, ...]) -> None:
    stack = process.open.get(place, [])
    at = next((at for at in range(len(stack) - 1, -1, -1) if stack[at].stem == stem), -1)
    if at < 0:
        process.without_begin += 1
        return
    while len(stack) > at:  # what was begun inside and never ended, ended with it
        _close(process, stack.pop(), time_ns)


def _close(process: _Process, one: _Open, time_ns: int) -> None:
    process.spans.append((one.begin_ns, time_ns, one.name, one.kind, one.values))


def _close_all(process: _Process) -> int:
    """What is open when the trace ends lasts to its end; how much that is."""
    count = 0
    for stack in process.open.values():
        count += len(stack)
        while stack:
            _close(process, stack.pop(), process.last_ns)
    return count


def _function(process: _Process, event: CtfEvent) -> str:
    """The function that `-finstrument-functions` names by its address: file and offset in it."""
    if not event.name.startswith(_FUNCTION):
        return ""
    address = _number(event.payload, "addr", default=0)
    for begin, end, path in process.images:
        if begin <= address < end:
            return f"{PurePath(path).name}+{address - begin:#x}"
    return f"{address:#x}"


def _trace(trace: CtfTrace, process: _Process, unread: Counter[str], left_open: int) -> Trace:
    rows = EventRows()
    spans = sorted(process.spans, key=lambda one: (one[0], -one[1]))
    given: dict[str, Any] = {
        name: [values.get(name, nothing) for *_, values in spans]
        for name, nothing in (("sequence", -1), ("correlation", 0), ("bytes", 0), ("device", -1), ("stream", -1))
    }
    on_thread = [values.get("tid") for *_, values in spans]
    known = rows.thread_rows(tid for tid in on_thread if tid is not None)
    following = iter(known)
    given["thread"] = [next(following) if tid is not None else -1 for tid in on_thread]
    rows.add([(begin, end) for begin, end, *_ in spans], [name for _, _, name, _, _ in spans],
             kind=[kind for *_, kind, _ in spans], **given)  # fmt: skip
    made = rows.trace(
        trace.name,
        [Thread(0, process.pid, tid, process.names.get(tid, "")) for tid in rows.threads],
        [],
        rank=0,
        epoch_ns=trace.realtime_ns or 0,
        facts={"has_sync_records": False},
    )
    said = trace.sentences()
    if trace.discarded:
        said.append(f"the tracer discarded {trace.discarded:,} events")
    if unread:
        names = ", ".join(name for name, _ in unread.most_common(_MOST_NAMED))
        said.append(f"{unread.total():,} events neither begin nor end anything and are not read ({names})")
    if left_open or process.without_begin:
        said.append(f"{left_open:,} events have no end and {process.without_begin:,} ends no begin")
    return replace(made, complete=trace.complete, warnings=tuple(said))


def _number(fields: Any, *names: str, default: int = -1) -> int:
    for name in names:
        value: Value | None = fields.get(name)
        if isinstance(value, int):
            return value
    return default
