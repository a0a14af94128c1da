"""What every thread did while the window was open: ran, could have run, or waited; for what, and because of whom.

Made of the kernel's events (`kernel_events` of a profile). A thread is *running* from the switch that brings it to the
one that takes it away; *runnable* after one that took it against its will, and after its waking; *blocked* otherwise.
The reason of a block is the system call that is open, where system calls were recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, replace
from leadline.profiles.tables import StringTable
from leadline.schema import KernelEventKind as Event

Numbers = NDArray[np.int64]
_HELPERS = re.compile(r"(rcu[_ocb]|kworker/|ksoftirqd/|migration/|irq/|cpuhp/|watchdog)")
_HELPERS_NS = 1_000_000
_DEAD = 0x30  # EXIT_DEAD and EXIT_ZOMBIE in `prev_state`

_COLUMNS = ("tid", "start_ns", "duration_ns", "state", "cpu", "other", "reason")


class State(IntEnum):
    """What a thread does."""

    RUNNING = 0
    RUNNABLE = 1
    BLOCKED = 2
    ENDED = 3


@dataclass(frozen=True)
class States:
    """One row per stretch of time, ordered by thread and start.

    `other`: of a runnable stretch the thread that held the CPU last (who left when this one came, else who came when
    it was sent off; helpers of the kernel only where it is short), of a blocked one the thread that ended it; -1 where
    that is not known, 0 for an idle CPU.
    `cpu`: where it ran, or ran last; -1 unknown.
    """

    tid: Numbers
    start_ns: Numbers
    duration_ns: Numbers
    state: NDArray[np.uint8]
    cpu: Numbers
    other: Numbers
    reason: NDArray[Any]
    """Name of the system call that a blocked stretch waits in; empty where none was recorded."""
    names: Mapping[int, str]
    """Name of every thread that any row mentions, as far as it is known."""

    def __len__(self) -> int:
        return int(self.tid.size)

    @property
    def end_ns(self) -> Numbers:
        """End of every row."""
        return self.start_ns + self.duration_ns

    def of(self, tid: int) -> States:
        """The rows of one thread."""
        low, high = np.searchsorted(self.tid, [tid, tid + 1])
        part = slice(int(low), int(high))
        numbers = {name: getattr(self, name)[part] for name in _COLUMNS}
        return replace(self, **numbers)

    def columns(self) -> dict[str, NDArray[Any]]:
        """As NumPy columns; `state` and names as text."""
        words = np.array([state.name.lower() for state in State], dtype=object)
        named = np.array([self.names.get(tid, "") for tid in self.other.tolist()], dtype=object)
        return {
            "tid": self.tid,
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "state": words[self.state] if len(self) else np.empty(0, dtype=object),
            "cpu": self.cpu,
            "reason": self.reason,
            "other": self.other,
            "other_name": named,
        }


def thread_states(
    events: Mapping[str, NDArray[Any]], text: StringTable, window: tuple[int, int], tids: Sequence[int] | None = None
) -> States:
    """States of the threads `tids` (None: of all that were switched) from `window[0]` to `window[1]` ns.

    `events`: rows of `kernel_events` of one machine; `text`: the profile's strings.
    """
    move = _moves(events, window, None if tids is None else np.array(sorted(tids), dtype=np.int64))
    tid, start, state = move.tid, move.time_ns, move.state
    following = np.concatenate((tid[1:] == tid[:-1], [False])) if tid.size else np.empty(0, bool)
    end = np.where(following, np.concatenate((start[1:], [0]))[: tid.size], window[1])
    ended_by = np.where(following, np.concatenate((move.by[1:], [-1]))[: tid.size], -1)
    blocked, runnable = state == State.BLOCKED, state == State.RUNNABLE
    names = thread_names(events, text)
    held = _held(runnable, ended_by, move.holder, end - start, names)
    other = np.where(blocked, ended_by, np.where(runnable, held, -1))
    kept = (end > start) & (state != State.ENDED)
    reason = _reasons(events, text, tid[kept], start[kept], blocked[kept])
    return States(
        tid=tid[kept],
        start_ns=start[kept],
        duration_ns=(end - start)[kept],
        state=state[kept].astype(np.uint8),
        cpu=move.cpu[kept],
        other=other[kept],
        reason=reason,
        names=names,
    )


def _held(
    runnable: NDArray[np.bool_], last: Numbers, first: Numbers, lasted: Numbers, names: Mapping[int, str]
) -> Numbers:
    """Who held the CPU of each runnable stretch: who left when it came back, else who came when it was sent off. A
    helper of the kernel between runs for microseconds, so that a long stretch is not laid to it; then it is unknown."""
    helpers = np.array([tid for tid, name in names.items() if _HELPERS.match(name)], dtype=np.int64)
    helped = np.isin(last, helpers)
    other_first = (first > 0) & ~np.isin(first, helpers)
    found = np.where((last > 0) & ~(runnable & helped & other_first), last, first)
    unknown = runnable & np.isin(found, helpers) & (lasted > _HELPERS_NS)
    return np.where(unknown, -1, found)


@dataclass(frozen=True)
class _Moves:
    """Everything that changes what a thread does, ordered by thread and time. `state`: from then on. `by`: who woke it,
    or left the CPU to it; `holder`: who came when it was sent off; -1 for neither."""

    tid: Numbers
    time_ns: Numbers
    state: Numbers
    cpu: Numbers
    by: Numbers
    holder: Numbers

    def at(self, rows: Any) -> _Moves:
        return _Moves(*(getattr(self, name)[rows] for name in ("tid", "time_ns", "state", "cpu", "by", "holder")))


def _moves(events: Mapping[str, NDArray[Any]], window: tuple[int, int], tids: Numbers | None) -> _Moves:
    """The moves inside the window; the first of each thread lies at its beginning and says what it did until then."""
    kind, time = events["kind"], events["time_ns"].astype(np.int64)
    cpu, who, target, value = (events[name].astype(np.int64) for name in ("cpu", "tid", "target", "value"))
    sent_off = value & 0xFF == 0
    away = np.where(sent_off, State.RUNNABLE, np.where(value & _DEAD != 0, State.ENDED, State.BLOCKED))
    none = np.full(time.size, -1)
    parts = []

    def add(
        chosen: NDArray[np.bool_], thread: Numbers, state: Any, place: Numbers, by: Numbers, holder: Numbers
    ) -> None:
        rows = np.flatnonzero(chosen & (thread > 0))
        states = np.broadcast_to(np.asarray(state, dtype=np.int64), time.shape)[rows]
        parts.append((thread[rows], time[rows], states, place[rows], by[rows], holder[rows], rows))

    wakes = np.isin(kind, [Event.WAKING, Event.FORK])
    add(kind == Event.SWITCH, who, away, cpu, none, np.where(sent_off, target, none))
    add(kind == Event.SWITCH, target, State.RUNNING, cpu, who, none)
    add(kind == Event.SWITCH_OUT, who, np.where(value == 1, State.RUNNABLE, State.BLOCKED), cpu, none, none)
    add(kind == Event.SWITCH_IN, who, State.RUNNING, cpu, none, none)
    add(wakes, target, State.RUNNABLE, none, who, none)
    add(kind == Event.EXIT, who, State.ENDED, cpu, none, none)
    *columns, row = (np.concatenate(one) for one in zip(*parts, strict=True))
    found = _Moves(*columns)
    inside = (found.time_ns >= window[0]) & (found.time_ns <= window[1])
    if tids is not None:
        inside &= np.isin(found.tid, tids)
    order = np.flatnonzero(inside)
    order = order[np.lexsort((row[order], found.time_ns[order], found.tid[order]))]
    found, row = found.at(order), row[order]
    # who runs or may run is not woken; a thread that has ended only leaves the CPU
    same = np.concatenate(([False], found.tid[1:] == found.tid[:-1])) if order.size else np.empty(0, bool)
    before = np.concatenate(([-1], found.state[:-1]))[: order.size]
    idle = wakes[row] & np.isin(before, [State.RUNNING, State.RUNNABLE]) | (before == State.ENDED)
    kept = ~(same & idle)
    return _from_the_beginning(window[0], found.at(kept), kind[row[kept]])


def _from_the_beginning(begin: int, moves: _Moves, kind: NDArray[Any]) -> _Moves:
    """With a row per thread for what it did before its first move, which the move tells; and where every thread was
    last, where that was not known."""
    if not moves.tid.size:
        return moves
    first = np.concatenate(([True], moves.tid[1:] != moves.tid[:-1]))
    opening, how = moves.at(first), kind[first]
    until_then = np.where(
        how == Event.FORK,
        State.ENDED,  # it was not there
        np.where(
            how == Event.WAKING, State.BLOCKED, np.where(opening.state == State.RUNNING, State.RUNNABLE, State.RUNNING)
        ),
    )
    none = np.full(opening.tid.size, -1)
    earliest = _Moves(opening.tid, np.full(none.size, begin), until_then, opening.cpu, none, none)
    names = ("tid", "time_ns", "state", "cpu", "by", "holder")
    both = _Moves(*(np.concatenate((getattr(earliest, name), getattr(moves, name))) for name in names))
    both = both.at(np.lexsort((np.arange(both.tid.size), both.time_ns, both.tid)))
    known = np.maximum.accumulate(np.where(both.cpu >= 0, np.arange(both.cpu.size), 0))
    return replace(both, cpu=np.where(both.tid[known] == both.tid, both.cpu[known], -1))


def _reasons(
    events: Mapping[str, NDArray[Any]], text: StringTable, tid: Numbers, start: Numbers, blocked: NDArray[np.bool_]
) -> NDArray[Any]:
    """For every blocked stretch the system call that was entered and not left when it began."""
    found = np.full(tid.size, "", dtype=object)
    rows = np.flatnonzero(np.isin(events["kind"], [Event.SYSCALL_ENTRY, Event.SYSCALL_EXIT]))
    if not rows.size:
        return found
    rows = rows[np.lexsort((events["time_ns"][rows], events["tid"][rows]))]
    threads, times = events["tid"][rows], events["time_ns"][rows]
    entered, names = events["kind"][rows] == Event.SYSCALL_ENTRY, events["name"][rows]
    for one in np.unique(tid[blocked]).tolist():
        mine = np.flatnonzero(blocked & (tid == one))
        low, high = np.searchsorted(threads, [one, one + 1])
        last = np.searchsorted(times[low:high], start[mine], side="right") - 1 + low
        inside = last >= low
        inside[inside] = entered[last[inside]]
        found[mine[inside]] = [text[int(name)] for name in names[last[inside]]]
        # before the first event the window had not begun: what it left says where it was
        early = last < low
        if low < high and not entered[low]:
            found[mine[early]] = text[int(names[low])]
    return found


def thread_names(events: Mapping[str, NDArray[Any]], text: StringTable) -> dict[int, str]:
    """The last name that any event gives for each thread; 0 is the idle CPU."""
    named = np.isin(events["kind"], [Event.SWITCH, Event.WAKING, Event.FORK])
    rows = np.flatnonzero(named & (events["target"] > 0))
    last = dict(zip(events["target"][rows].tolist(), events["name"][rows].tolist(), strict=True))
    return {**{tid: text[name] for tid, name in last.items()}, 0: "idle"}
