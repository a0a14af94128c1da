"""What Nsight Systems recorded of threads: when they were on a CPU (`SCHED_EVENTS`), calls of the system's libraries
(`OSRT_API`), and sampled stacks (`COMPOSITE_EVENTS` with `SAMPLING_CALLCHAINS`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from leadline._dataclass import dataclass
from leadline.schema import KernelEventKind as Kind
from leadline.trace.kernel.columns import Columns, columns, in_order
from leadline.trace.sqlite_events import Database

_AT_ONCE_NS = 20_000
"""A thread that comes to a CPU so soon after another left it took its place."""
_TID = 0xFFFFFF
_UNWILLING = ("ready", "runnable", "running")
"""Words for the state of a thread that could have gone on, in the exporter's names for states."""

Row = tuple[int, int, int, int, int, str]


@dataclass(frozen=True)
class Sample:
    """A sampled stack. `thread`: its packed number. `frames`: (function, module), outermost first. `ns`: the CPU time
    that it stands for."""

    thread: int
    time_ns: int
    frames: tuple[tuple[str, str], ...]
    ns: int


def scheduling(database: Database, texts: Mapping[int, str], names: Mapping[int, str]) -> tuple[Columns, str]:
    """Switches and library calls as events of the kernel; and a sentence on what they do not say, or none.

    `names`: of threads, by their packed numbers.
    """
    switches, sentence = _switches(database, names)
    parts = [_columns(kind, rows) for kind, rows in switches.items() if rows]
    calls = database.rows("OSRT_API", ("start", "end", "globalTid", "nameId"), (-1, -1, 0, -1))
    known = [row for row in calls if row[1] >= row[0] >= 0]
    for kind, column in ((Kind.SYSCALL_ENTRY, 0), (Kind.SYSCALL_EXIT, 1)):
        rows = [(row[column], -1, row[2] & _TID, -1, 0, texts.get(row[3], "")) for row in known]
        parts += [_columns(kind, rows)] if rows and switches else []
    return in_order(parts), sentence


def _switches(database: Database, names: Mapping[int, str]) -> tuple[dict[Kind, list[Row]], str]:
    asked = ("start", "cpu", "isSchedIn", "globalTid", "threadState")
    told = "threadState" in database.columns("SCHED_EVENTS") if "SCHED_EVENTS" in database.tables else False
    listed = sorted(database.rows("SCHED_EVENTS", asked, (-1, -1, 0, 0, -1)))
    if not listed:
        return {}, ""
    states = dict(database.rows("ENUM_SAMPLING_THREAD_STATE", ("id", "label"), (0, "")))
    unwilling = {key for key, label in states.items() if str(label).lower().startswith(_UNWILLING)}
    found: dict[Kind, list[Row]] = {Kind.SWITCH: []}
    left: dict[int, tuple[int, int, int]] = {}  # of every CPU who left it last: time, thread, state

    def settle(cpu: int) -> None:
        time, thread, state = left.pop(cpu)
        found[Kind.SWITCH].append((time, cpu, thread, 0, state, ""))

    for time, cpu, comes, packed, state in listed:
        thread = packed & _TID
        if comes:
            came = names.get(packed, "")
            if cpu in left and left[cpu][1] != thread and time - left[cpu][0] <= _AT_ONCE_NS:
                _, before, why = left.pop(cpu)
                found[Kind.SWITCH].append((time, cpu, before, thread, why, came))
                continue
            if cpu in left:
                settle(cpu)
            found[Kind.SWITCH].append((time, cpu, 0, thread, 0, came))
        else:
            if cpu in left:
                settle(cpu)
            left[cpu] = (time, thread, 0 if state in unwilling else 1)
    for cpu in list(left):
        settle(cpu)
    untold = "preemption is not recorded: all waits count as blocked"
    return found, "" if told and unwilling else untold


def samples(database: Database, texts: Mapping[int, str]) -> Iterator[Sample]:
    """Every sample that has a stack. A sample stands for the usual time between two samples of a thread."""
    listed = sorted(database.rows("COMPOSITE_EVENTS", ("globalTid", "start", "id"), (0, 0, -1)))
    if not listed:
        return
    chains: dict[int, list[tuple[int, str, str]]] = {}
    asked = ("id", "stackDepth", "symbol", "module")
    for number, depth, symbol, module in database.rows("SAMPLING_CALLCHAINS", asked, (-1, 0, -1, -1)):
        chains.setdefault(number, []).append((depth, texts.get(symbol, ""), PurePath(texts.get(module, "")).name))
    period = _period(listed)
    for thread, time_ns, number in listed:
        if chain := chains.get(number):
            frames = tuple((symbol, module) for _, symbol, module in sorted(chain, reverse=True))
            yield Sample(thread, time_ns, frames, period)


def _period(listed: Sequence[tuple[int, int, int]]) -> int:
    thread, start = np.array([row[:2] for row in listed], dtype=np.int64).T
    gaps = np.diff(start)[np.diff(thread) == 0]
    return int(np.median(gaps)) if gaps.size else 1_000_000


def _columns(kind: Kind, rows: list[Row]) -> Columns:
    time, cpu, tid, target, value, name = zip(*rows, strict=True)
    given = {"tid": tid, "target": target, "value": value, "name": np.array(name, dtype=object)}
    return columns(kind, np.array(time), np.array(cpu), **given)
