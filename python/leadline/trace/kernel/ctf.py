"""Events of the kernel in CTF, as LTTng's modules and perf name them, to the columns of `kernel_events`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from leadline.schema import KernelEventKind as Kind
from leadline.trace.ctf import CtfEvent, Value
from leadline.trace.kernel.columns import Columns, columns, in_order
from leadline.trace.kernel.syscalls import syscall_names

_INTERRUPTS = {
    "irq_handler_entry": 1,
    "irq_handler_exit": -1,
    "irq_softirq_entry": 1,
    "softirq_entry": 1,
    "irq_softirq_exit": -1,
    "softirq_exit": -1,
    "timer_hrtimer_expire_entry": 1,
    "hrtimer_expire_entry": 1,
    "timer_hrtimer_expire_exit": -1,
    "hrtimer_expire_exit": -1,
}
_IN_INTERRUPT = 0x18  # TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ of perf's common_flags
_SECTOR = 512
_FAULTS = ("x86_exceptions_page_fault_user", "page_fault_user", "exceptions_page_fault_user")

Row = tuple[int, int, int, int, int, str]
"""Time, CPU, thread, target, value and name."""


class KernelEvents:
    """Collects events in order of time. `unread` counts those of names that are not known here; `names`: of threads,
    where an event said so."""

    def __init__(self, machine: str) -> None:
        self.unread: Counter[str] = Counter()
        self.names: dict[int, str] = {}
        self._rows: dict[Kind, list[Row]] = {}
        self._running: dict[int, int] = {}
        self._interrupted: dict[int, int] = {}
        self._calls = syscall_names(machine)

    def take(self, events: Iterable[CtfEvent]) -> None:
        """Adds them all."""
        for event in events:
            self._take(event, event.name.rpartition(":")[2])

    def columns(self) -> Columns:
        """What was collected."""
        parts = []
        for kind, rows in self._rows.items():
            time, cpu, tid, target, value, name = zip(*rows, strict=True)
            given: dict[str, Any] = {"tid": tid, "target": target, "value": value, "name": np.array(name, dtype=object)}
            parts.append(columns(kind, np.array(time), np.array(cpu), **given))
        return in_order(parts)

    def _take(self, event: CtfEvent, name: str) -> None:
        own, around = event.payload, event.context
        cpu = _number(around, "cpu_id", default=_number(own, "perf_cpu", default=-1))
        tid = _number(around, "tid", "vtid", default=_number(own, "perf_tid", default=self._running.get(cpu, -1)))

        def add(kind: Kind, *, tid: int = tid, target: int = -1, value: int = 0, name: str = "") -> None:
            self._rows.setdefault(kind, []).append((event.time_ns, cpu, tid, target, value, name))

        if name in _INTERRUPTS:
            self._interrupted[cpu] = max(self._interrupted.get(cpu, 0) + _INTERRUPTS[name], 0)
        if name == "sched_switch":
            came = _number(own, "next_tid", "next_pid")
            left, state = _number(own, "prev_tid", "prev_pid"), _number(own, "prev_state")
            add(Kind.SWITCH, tid=left, target=came, value=state, name=_word(own, "next_comm"))
            self._running[cpu] = came
        elif name == "sched_waking":
            self._woken(add, own, cpu, tid)
        elif name in ("sched_wakeup", "sched_wakeup_new") and Kind.WAKING not in self._rows:
            self._woken(add, own, cpu, tid)  # older recorders have no event for who asks
        elif name == "sched_process_fork":
            add(
                Kind.FORK, tid=_number(own, "parent_tid", "parent_pid", default=tid),
                target=_number(own, "child_tid", "child_pid"), name=_word(own, "child_comm"),
            )  # fmt: skip
        elif name == "sched_process_exec":
            add(Kind.EXEC, tid=_number(own, "tid", "pid", default=tid), name=_word(own, "filename"))
        elif name == "sched_process_exit":
            add(Kind.EXIT, tid=_number(own, "tid", "pid", default=tid), name=_word(own, "comm"))
        elif name.startswith("syscall_entry_"):
            add(Kind.SYSCALL_ENTRY, name=name.removeprefix("syscall_entry_"))
        elif name.startswith("syscall_exit_"):
            add(Kind.SYSCALL_EXIT, value=_number(own, "ret"), name=name.removeprefix("syscall_exit_"))
        elif name in ("sys_enter", "sys_exit"):
            number = _number(own, "id")
            kind = Kind.SYSCALL_ENTRY if name == "sys_enter" else Kind.SYSCALL_EXIT
            add(kind, value=_number(own, "ret", default=0), name=self._calls.get(number, f"system call {number}"))
        elif name in ("block_rq_issue", "block_rq_complete"):
            kind = Kind.BLOCK_ISSUE if name == "block_rq_issue" else Kind.BLOCK_COMPLETE
            size = _SECTOR * _number(own, "nr_sector", default=0)
            add(kind, target=_number(own, "sector"), value=size, name=_request(own))
        elif name in ("irq_handler_entry", "irq_handler_exit"):
            kind = Kind.IRQ_ENTRY if name == "irq_handler_entry" else Kind.IRQ_EXIT
            add(kind, value=_number(own, "irq"), name=_word(own, "name"))
        elif name in _FAULTS:
            add(Kind.PAGE_FAULT, value=_number(own, "address", default=0))
        elif name == "lttng_statedump_process_state":
            self.names[_number(own, "tid")] = _word(own, "name")
        elif name not in _INTERRUPTS and not name.startswith("lttng_statedump"):
            self.unread[name] += 1

    def _woken(self, add: Any, own: Any, cpu: int, tid: int) -> None:
        # an interrupt wakes on behalf of nobody: the thread that it interrupted has nothing to do with it
        interrupted = self._interrupted.get(cpu, 0) or _number(own, "common_flags", default=0) & _IN_INTERRUPT
        target = _number(own, "tid", "pid")
        by = -1 if interrupted else tid
        add(Kind.WAKING, tid=by, target=target, value=_number(own, "target_cpu", default=-1), name=_word(own, "comm"))


def _number(fields: Any, *names: str, default: int = -1) -> int:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int):
            return value
    return default


def _word(fields: Any, name: str) -> str:
    value: Value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def _request(fields: Any) -> str:
    """What perf writes as text ("WS") and LTTng as bits, of which the lowest says that it writes."""
    told = fields.get("rwbs", "")
    return told if isinstance(told, str) else "W" if isinstance(told, int) and told & 1 else "R"
