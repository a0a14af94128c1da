"""Events of several machines on one clock.

Every process writes its events in CLOCK_MONOTONIC of its machine, and says how that clock relates to CLOCK_REALTIME.
After `on_one_clock` all events of a profile are in the clock of the machine whose process began first, moved by the
difference of the relations; processes of one machine move alike, by the relation of the first of them. By how much is
kept (`moved_ns` in a process's clock), so that merging again starts from what was measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from leadline.profiles.canonical import owners
from leadline.profiles.lineage import IMPORTED, clock_of, machine_of, moved_ns, record_of_rows
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables

_SAME_CLOCK_NS = 60_000_000_000
"""Machines without an id of their own are told apart by host name and by clocks that differ by more than this: hosts
of one name are common, and clocks that count from a machine's start differ by hours."""
_MOST_NS = 2**61
"""Clocks that are further apart (73 years) are damaged, and times moved by so much would leave 64 bits."""


def on_one_clock(profile: Profile) -> Profile:
    """The profile with all events on one clock; itself where that is so already."""
    records = record_of_rows(profile)
    moves = _moves(profile, records)
    change = [new - moved_ns(record) for new, record in zip(moves, records, strict=True)]
    if not any(change):
        return profile
    events = profile.events
    owner = owners(profile.tables, np.arange(len(change)))[events["node"].astype(np.int64)]
    start = events["start_ns"] + np.array([*change, 0], np.int64)[owner]
    by_start = np.lexsort((owner, start))
    moved = {name: values[by_start] for name, values in events.items()}
    moved["start_ns"] = start[by_start]
    kernel = dict(profile.table("kernel_events"))
    kernel["time_ns"] = kernel["time_ns"] + np.array([*change, 0], np.int64)[kernel["process"].astype(np.int64)]
    by_time = np.argsort(kernel["time_ns"], kind="stable")
    kernel = {name: values[by_time] for name, values in kernel.items()}
    new_of_record = {id(record): new for record, new in zip(records, moves, strict=True)}
    listed = [
        _with_move(record, new_of_record.get(id(record), moved_ns(record))) for record in profile.meta["processes"]
    ]
    return Profile(
        Tables({**profile.tables.columns, "events": moved, "kernel_events": kernel}),
        {**profile.meta, "processes": listed},
    )


def _moves(profile: Profile, records: list[Mapping[str, Any]]) -> list[int]:
    """How many ns each process's events are to be moved from what its own clock showed."""
    relation: dict[Hashable, int] = {}
    first: int | None = None
    by_start = sorted(profile.processes, key=lambda process: (process.start_ns, process.row))
    group_of_row: dict[int, Hashable] = {}
    for process in by_start:
        record = records[process.row]
        clock = clock_of(record)
        if clock is None:
            continue
        own = clock + moved_ns(record)
        group = _machine(record, profile.meta, own)
        group_of_row[process.row] = group
        relation.setdefault(group, own)
        first = own if first is None else first
    moves = []
    for process in profile.processes:
        group = group_of_row.get(process.row)
        move = 0 if group is None else relation[group] - (first or 0)
        moves.append(move if abs(move) < _MOST_NS else 0)
    return moves


def _machine(record: Mapping[str, Any], meta: Mapping[str, Any], clock: int) -> Hashable:
    identity = record.get("identity")
    if isinstance(identity, str) and identity.startswith(IMPORTED):
        return identity  # times of every imported trace count from its own beginning
    return machine_of(record, meta), round(clock / _SAME_CLOCK_NS)


def _with_move(record: Mapping[str, Any], move_ns: int) -> dict[str, Any]:
    """The record with its clock related to where its events now are."""
    before = moved_ns(record)
    if move_ns == before:
        return dict(record)
    clock = dict(record["clock"])
    clock["monotonic_ns"] = clock["monotonic_ns"] + move_ns - before
    clock["moved_ns"] = move_ns
    return {**record, "clock": clock}
