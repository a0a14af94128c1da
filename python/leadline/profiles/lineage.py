"""Which process is which: what each process said about itself, the machine it ran on, its parent and its clock.

A process is a row of `processes`. Its pid is no key: containers and machines share pids, and one machine gives a pid
again. Rows of older files and what processes said about themselves are brought together by pid and time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from leadline.profiles.profile import Profile
from leadline.profiles.records import Process

_MOST_NS = 2**62
"""A clock beyond the year 2116 is damaged."""
_MOST_PAIRS = 1_000_000
IMPORTED = "imported."
"""What the identity of a process begins with that another tool recorded."""
_MACHINE_KEYS = ("boot_id", "hostname")
"""What tells machines apart, in a process's record or its `host`; a machine that was started again has a new clock."""


def record_of_rows(profile: Profile) -> list[Mapping[str, Any]]:
    """For every row of `processes` its object of `meta.processes`; empty where it left none.

    Among records of one pid the row takes the one whose start lies nearest; a record belongs to one row only.
    """
    left: dict[Any, list[Mapping[str, Any]]] = {}
    for record in profile.meta.get("processes") or ():
        left.setdefault(record.get("pid"), []).append(record)
    found: list[Mapping[str, Any]] = [{} for _ in profile.processes]
    of_pid: dict[int, list[Process]] = {}
    for process in profile.processes:
        of_pid.setdefault(process.pid, []).append(process)
    pairs: list[tuple[int, int, int]] = []
    for pid, processes in of_pid.items():
        records = list(enumerate(left.get(pid, ())))
        if len(processes) * len(records) > _MOST_PAIRS:  # no job gives one pid so often: both in the order they began
            records.sort(key=lambda one: _whole(one[1].get("started_at_ns")))
            processes.sort(key=lambda one: one.start_ns)
            pairs += [(0, one.row, position) for one, (position, _) in zip(processes, records, strict=False)]
            continue
        pairs += [
            (abs(one.start_ns - _whole(record.get("started_at_ns"))), one.row, position)
            for one in processes
            for position, record in records
        ]
    rows: set[int] = set()
    taken: set[tuple[int, int]] = set()
    for _, row, position in sorted(pairs):
        pid = profile.processes[row].pid
        if row not in rows and (pid, position) not in taken:
            rows.add(row)
            taken.add((pid, position))
            found[row] = left[pid][position]
    return found


def machine_of(record: Mapping[str, Any], meta: Mapping[str, Any]) -> Hashable:
    """What tells the machine of a process from others, as far as its record or else the profile says: processes of one
    machine share CLOCK_MONOTONIC. An identity begins with the machine since it was started."""
    if identity := _text(record, "identity"):
        return identity.partition(".")[0]
    for source in (record, record.get("host"), meta.get("host")):
        if isinstance(source, Mapping):
            named = tuple(str(source[key]) for key in _MACHINE_KEYS if source.get(key))
            if named:
                return named[0]
    return ""


def parent_rows(profile: Profile) -> list[int]:
    """For every process the row of the process that started it, -1 where that was not measured: the one whose identity
    its record names, as the last program that this process was before; where records name none (files of earlier
    releases), of those with the parent's pid on the same machine the last that began before it."""
    records = record_of_rows(profile)
    named: dict[str, list[int]] = {}
    for row, record in enumerate(records):
        if identity := _text(record, "identity"):
            named.setdefault(identity, []).append(row)
    machines = [machine_of(record, profile.meta) for record in records]
    by_identity: dict[tuple[Hashable, int], list[int]] = {}
    for process in profile.processes:
        by_identity.setdefault((machines[process.row], process.pid), []).append(process.row)
    parents = []
    for process in profile.processes:
        known = _text(records[process.row], "parent_identity")
        likely = named.get(known) if known else by_identity.get((machines[process.row], process.parent_pid))
        candidates = [
            row for row in likely or () if row != process.row and profile.processes[row].start_ns <= process.start_ns
        ]
        parents.append(max(candidates, key=lambda row: (profile.processes[row].start_ns, row), default=-1))
    return parents


def clock_of(record: Mapping[str, Any]) -> int | None:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC in ns, from a process's record or a profile's meta; None where it does not
    say."""
    clock = record.get("clock")
    if not isinstance(clock, Mapping) or not isinstance(clock.get("realtime_ns"), int | float):
        return None
    monotonic = clock.get("monotonic_ns")
    if not isinstance(monotonic, int | float):
        return None
    relation = int(clock["realtime_ns"]) - int(monotonic)
    return relation if abs(relation) < _MOST_NS else None


def moved_ns(record: Mapping[str, Any]) -> int:
    """By how much a process's events were moved from what its own clock showed, to lie on one clock with others."""
    clock = record.get("clock")
    moved = clock.get("moved_ns") if isinstance(clock, Mapping) else None
    return moved if isinstance(moved, int) and abs(moved) < _MOST_NS // 2 else 0


def event_clocks(profile: Profile) -> Sequence[int | None]:
    """`clock_of` for every row of `processes`: the profile's own where the process does not say, else None."""
    common = clock_of(profile.meta)
    clocks = [clock_of(record) for record in record_of_rows(profile)]
    return [common if clock is None else clock for clock in clocks]


def _text(record: Mapping[str, Any], key: str) -> str:
    """A key's text; empty where it is absent or, in a file from someone else, no text."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
