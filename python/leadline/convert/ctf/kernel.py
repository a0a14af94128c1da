"""What the kernel did, in the layout of LTTng's kernel tracer: a stream per CPU, names and fields as `lttng-modules`
2.9 and later write them, so that Trace Compass's control flow, resources and critical path work on it.

LTTng counts priorities from -100; they are not recorded here, so every thread has that of nice 0.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._version import __version__
from leadline.convert.ctf.layout import Batch, Clock, EventClass, Fields, Integer, Layout, Stream, StreamClass, Text
from leadline.convert.window import Machine
from leadline.profiles import Profile
from leadline.schema import KernelEventKind as Kind
from leadline.trace.kernel.window import recorded
from leadline.trace.states import thread_names

_COMM = Text(16)
_THREAD = Integer(32, signed=True)
_LONG = Integer(64, signed=True)
_WORD, _WIDE, _ADDRESS = Integer(32), Integer(64), Integer(64, base=16)
_REQUEST = {"dev": _WORD, "sector": _WIDE, "nr_sector": _WORD, "rwbs": _WORD}
_NORMAL_PRIORITY = 20
_FIELDS: Mapping[Kind, tuple[str, Fields]] = {
    Kind.SWITCH: (
        "sched_switch",
        {
            "prev_comm": _COMM,
            "prev_tid": _THREAD,
            "prev_prio": _THREAD,
            "prev_state": _LONG,
            "next_comm": _COMM,
            "next_tid": _THREAD,
            "next_prio": _THREAD,
        },
    ),
    Kind.WAKING: ("sched_waking", {"comm": _COMM, "tid": _THREAD, "prio": _THREAD, "target_cpu": _THREAD}),
    Kind.FORK: (
        "sched_process_fork",
        {
            "parent_comm": _COMM,
            "parent_tid": _THREAD,
            "parent_pid": _THREAD,
            "child_comm": _COMM,
            "child_tid": _THREAD,
            "child_pid": _THREAD,
        },
    ),
    Kind.EXEC: ("sched_process_exec", {"filename": Text(128), "tid": _THREAD, "old_tid": _THREAD}),
    Kind.EXIT: ("sched_process_exit", {"comm": _COMM, "tid": _THREAD, "prio": _THREAD}),
    Kind.SYSCALL_ENTRY: ("syscall_entry_{}", {}),
    Kind.SYSCALL_EXIT: ("syscall_exit_{}", {"ret": _LONG}),
    Kind.BLOCK_ISSUE: (
        "block_rq_issue",
        {**_REQUEST, "bytes": _WORD, "tid": _THREAD, "comm": _COMM},
    ),
    Kind.BLOCK_COMPLETE: ("block_rq_complete", {**_REQUEST, "error": _THREAD}),
    Kind.IRQ_ENTRY: ("irq_handler_entry", {"irq": _THREAD, "name": Text(32)}),
    Kind.IRQ_EXIT: ("irq_handler_exit", {"irq": _THREAD, "ret": _THREAD}),
    Kind.PAGE_FAULT: ("x86_exceptions_page_fault_user", {"address": _ADDRESS, "ip": _ADDRESS, "error_code": _WIDE}),
}
_WRITE, _READ = 1, 0  # of rwbs in LTTng: a bit mask that begins with the direction


def kernel_trace(profile: Profile, machine: Machine) -> tuple[Layout, list[Stream]] | None:
    """The layout and the streams of a machine; None where its kernel was not recorded with who came after whom."""
    events = _of_machine(profile, machine)
    if not np.isin(events["kind"], [int(kind) for kind in _FIELDS]).any():
        return None
    text = profile.tables.strings
    groups = _groups(events, text)
    classes = StreamClass("cpus", {}, [EventClass(name, fields) for name, fields, _, _ in groups])
    layout = Layout(
        uuid=uuid.uuid5(machine.boot, f"kernel {profile.meta.get('started_at_ns')}"),
        clock=Clock(machine.boot, machine.offset_ns or 0),
        environment=_environment(profile, machine),
        streams=(classes,),
    )
    names = thread_names(events, text)
    lost = int(recorded(profile).get("lost", 0) or 0)
    shift = -machine.moved_ns
    streams: list[Stream] = []
    for cpu in np.unique(events["cpu"]).tolist():
        rows = np.flatnonzero(events["cpu"] == cpu)
        place = np.full(events["cpu"].size, -1, dtype=np.int64)
        place[rows] = np.arange(rows.size)
        batches = []
        known = np.zeros(rows.size, dtype=bool)
        for number, (_, _, kind, chosen) in enumerate(groups):
            mine = chosen[events["cpu"][chosen] == cpu]
            if not mine.size:
                continue
            known[place[mine]] = True
            records = np.zeros(mine.size, dtype=classes.record(classes.events[number]))
            records["id"], records["timestamp"] = number, events["time_ns"][mine] + shift
            for field, values in _VALUES[kind](events, mine, names, text).items():
                records[field] = values
            batches.append(Batch(place[mine], records))
        compact = np.cumsum(known) - 1
        batches = [Batch(compact[batch.places], batch.records) for batch in batches]
        streams.append(Stream(f"cpu_{cpu}", 0, int(cpu), batches, lost if not streams else 0))
    return layout, streams


def _of_machine(profile: Profile, machine: Machine) -> dict[str, NDArray[Any]]:
    events = profile.table("kernel_events")
    mine = np.isin(events["process"], list(machine.processes))
    return {name: values[mine] for name, values in events.items()}


def _groups(events: Mapping[str, NDArray[Any]], text: Any) -> list[tuple[str, Fields, Kind, NDArray[np.int64]]]:
    """(name, fields, kind, rows) of every event class that occurs; each system call has its own two."""
    found = []
    for kind, (name, fields) in _FIELDS.items():
        rows = np.flatnonzero(events["kind"] == kind)
        if not rows.size:
            continue
        if "{}" not in name:
            found.append((name, fields, kind, rows))
            continue
        for string in np.unique(events["name"][rows]).tolist():
            called = rows[events["name"][rows] == string]
            found.append((name.format(text[string].replace(" ", "_")), fields, kind, called))
    return found


def _environment(profile: Profile, machine: Machine) -> dict[str, str | int]:
    about = recorded(profile)
    return {
        "hostname": machine.name,
        "domain": "kernel",
        "sysname": "Linux",
        "kernel_release": str((profile.meta.get("host") or {}).get("kernel", "")),
        "tracer_name": "lttng-modules",
        "tracer_major": 2,
        "tracer_minor": 13,
        "tracer_patchlevel": 0,
        "trace_name": "leadline",
        "leadline": __version__,
        "leadline_kernel": f"{about.get('source', '')}, {about.get('level', '')}",
        "leadline_lost": int(about.get("lost", 0) or 0),
    }


Events = Mapping[str, NDArray[Any]]
Rows = NDArray[np.int64]
Names = Mapping[int, str]


def _comm(tids: NDArray[Any], names: Names) -> NDArray[Any]:
    distinct, of = np.unique(tids, return_inverse=True)
    texts = [("swapper" if tid == 0 else names.get(tid, "")).encode()[:15] for tid in distinct.tolist()]
    found: NDArray[Any] = np.array(texts, dtype="S16")[of.ravel()]
    return found


def _texts(events: Events, rows: Rows, text: Any, length: int) -> NDArray[Any]:
    distinct, of = np.unique(events["name"][rows], return_inverse=True)
    found: NDArray[Any] = np.array([text[one].encode()[: length - 1] for one in distinct.tolist()], dtype=f"S{length}")
    return found[of.ravel()]


def _switch(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {
        "prev_comm": _comm(events["tid"][rows], names),
        "prev_tid": events["tid"][rows],
        "prev_prio": _NORMAL_PRIORITY,
        "prev_state": events["value"][rows],
        "next_comm": _texts(events, rows, text, 16),
        "next_tid": events["target"][rows],
        "next_prio": _NORMAL_PRIORITY,
    }


def _waking(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    comm = _texts(events, rows, text, 16)
    return {"comm": comm, "tid": events["target"][rows], "prio": _NORMAL_PRIORITY, "target_cpu": events["value"][rows]}


def _fork(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    parent, child = events["tid"][rows], events["target"][rows]
    comms = {"parent_comm": _comm(parent, names), "child_comm": _texts(events, rows, text, 16)}
    return {**comms, "parent_tid": parent, "parent_pid": parent, "child_tid": child, "child_pid": child}


def _exec(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    tid = events["tid"][rows]
    return {"filename": _texts(events, rows, text, 128), "tid": tid, "old_tid": tid}


def _exit(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {"comm": _texts(events, rows, text, 16), "tid": events["tid"][rows], "prio": _NORMAL_PRIORITY}


def _nothing(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {}


def _result(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {"ret": events["value"][rows]}


def _block(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    writes = np.array(["W" in text[one] for one in events["name"][rows].tolist()])
    size = events["value"][rows]
    return {"sector": events["target"][rows], "nr_sector": size >> 9, "rwbs": np.where(writes, _WRITE, _READ)}


def _issue(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    tid = events["tid"][rows]
    more = {"bytes": events["value"][rows], "tid": tid, "comm": _comm(tid, names)}
    return {**_block(events, rows, names, text), **more}


def _irq(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {"irq": events["value"][rows], "name": _texts(events, rows, text, 32)}


def _irq_exit(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {"irq": events["value"][rows], "ret": 1}


def _fault(events: Events, rows: Rows, names: Names, text: Any) -> dict[str, Any]:
    return {"address": events["value"][rows].astype(np.uint64)}


_VALUES: Mapping[Kind, Callable[[Events, Rows, Names, Any], dict[str, Any]]] = {
    Kind.SWITCH: _switch,
    Kind.WAKING: _waking,
    Kind.FORK: _fork,
    Kind.EXEC: _exec,
    Kind.EXIT: _exit,
    Kind.SYSCALL_ENTRY: _nothing,
    Kind.SYSCALL_EXIT: _result,
    Kind.BLOCK_ISSUE: _issue,
    Kind.BLOCK_COMPLETE: _block,
    Kind.IRQ_ENTRY: _irq,
    Kind.IRQ_EXIT: _irq_exit,
    Kind.PAGE_FAULT: _fault,
}
