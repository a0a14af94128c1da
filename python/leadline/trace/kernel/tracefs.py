"""Raw pages of a tracefs instance to columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import KernelEventKind
from leadline.trace.kernel.columns import Columns, columns
from leadline.trace.kernel.formats import Format, parse_format
from leadline.trace.kernel.pages import Records, read_pages
from leadline.trace.kernel.syscalls import syscall_names

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
_IN_INTERRUPT = 0x08 | 0x10  # TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ
Maker = Callable[[Format, Bytes, Places], dict[str, Any]]


def decode(
    pages: Mapping[int, bytes], formats: Mapping[str, str], machine: str, page_bytes: int = 4096
) -> tuple[list[Columns], int]:
    """Columns per CPU and kind of event, and how many events the pages say are missing. Raises TraceError."""
    known = {name: parse_format(text) for name, text in formats.items() if name in _EVENTS}
    names = syscall_names(machine)
    found: list[Columns] = []
    lost = 0
    for cpu, raw in pages.items():
        data = np.frombuffer(raw, dtype=np.uint8)
        records = read_pages(data, page_bytes)
        lost += records.lost
        found += _of_cpu(cpu, data, records, known, names)
    return found, lost


def _of_cpu(
    cpu: int, data: Bytes, records: Records, known: Mapping[str, Format], names: Mapping[int, str]
) -> list[Columns]:
    if not records.at.size:
        return []
    number = data[records.at].astype(np.int64) | data[records.at + 1].astype(np.int64) << 8
    found = []
    for event, format_ in known.items():
        mine = number == format_.number
        at = records.at[mine]
        if not at.size:
            continue
        kind, make = _EVENTS[event]
        given = {"tid": format_.integers(data, at, "common_pid"), **make(format_, data, at)}
        if kind in (KernelEventKind.SYSCALL_ENTRY, KernelEventKind.SYSCALL_EXIT):
            given["name"] = _named(given.pop("number"), names)
        found.append(columns(kind, records.time_ns[mine], np.full(at.size, cpu), **given))
    return found


def _named(numbers: NDArray[np.int64], names: Mapping[int, str]) -> NDArray[Any]:
    distinct, of = np.unique(numbers, return_inverse=True)
    known = np.array([names.get(one, f"system call {one}") for one in distinct.tolist()], dtype=object)
    found: NDArray[Any] = known[of.ravel()]
    return found


def _switch(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {
        "tid": format_.integers(data, at, "prev_pid"),
        "target": format_.integers(data, at, "next_pid"),
        "value": format_.integers(data, at, "prev_state"),
        "name": format_.texts(data, at, "next_comm"),
    }


def _waking(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    # an interrupt wakes on behalf of nobody: the thread that it interrupted has nothing to do with it
    interrupt = format_.integers(data, at, "common_flags") & _IN_INTERRUPT != 0
    return {
        "tid": np.where(interrupt, -1, format_.integers(data, at, "common_pid")),
        "target": format_.integers(data, at, "pid"),
        "value": format_.integers(data, at, "target_cpu"),
        "name": format_.texts(data, at, "comm"),
    }


def _fork(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"target": format_.integers(data, at, "child_pid"), "name": format_.texts(data, at, "child_comm")}


def _exec(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"name": format_.texts(data, at, "filename")}


def _exit(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"tid": format_.integers(data, at, "pid"), "name": format_.texts(data, at, "comm")}


def _syscall_entry(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"number": format_.integers(data, at, "id")}


def _syscall_exit(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"number": format_.integers(data, at, "id"), "value": format_.integers(data, at, "ret")}


def _block(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    sectors = format_.integers(data, at, "nr_sector")
    return {
        "value": 512 * sectors,
        "target": format_.integers(data, at, "sector"),
        "name": format_.texts(data, at, "rwbs"),
    }


def _irq(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"value": format_.integers(data, at, "irq"), "name": format_.texts(data, at, "name")}


def _irq_exit(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"value": format_.integers(data, at, "irq")}


def _fault(format_: Format, data: Bytes, at: Places) -> dict[str, Any]:
    return {"value": format_.integers(data, at, "address")}


_EVENTS: Mapping[str, tuple[KernelEventKind, Maker]] = {
    "sched/sched_switch": (KernelEventKind.SWITCH, _switch),
    "sched/sched_waking": (KernelEventKind.WAKING, _waking),
    "sched/sched_process_fork": (KernelEventKind.FORK, _fork),
    "sched/sched_process_exec": (KernelEventKind.EXEC, _exec),
    "sched/sched_process_exit": (KernelEventKind.EXIT, _exit),
    "raw_syscalls/sys_enter": (KernelEventKind.SYSCALL_ENTRY, _syscall_entry),
    "raw_syscalls/sys_exit": (KernelEventKind.SYSCALL_EXIT, _syscall_exit),
    "block/block_rq_issue": (KernelEventKind.BLOCK_ISSUE, _block),
    "block/block_rq_complete": (KernelEventKind.BLOCK_COMPLETE, _block),
    "irq/irq_handler_entry": (KernelEventKind.IRQ_ENTRY, _irq),
    "irq/irq_handler_exit": (KernelEventKind.IRQ_EXIT, _irq_exit),
    "exceptions/page_fault_user": (KernelEventKind.PAGE_FAULT, _fault),
}
