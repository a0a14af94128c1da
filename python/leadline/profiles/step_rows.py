"""Rows of the tables `steps` and `step_walls`: of one thread, of many added up, of what lies between two files.

Bounded whatever the number of steps: rows of consecutive steps have equal size, a power of two, and are at most 12.
Adding in any order and grouping gives the same rows. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from leadline._dataclass import dataclass, field
from leadline._histogram import bin_of
from leadline.profiles.tables import Array, Tables, columns_from_rows
from leadline.schema import TABLES

MOST_SPANS = 12
MOST_SLOWEST = 8
SPAN, SLOW = 0, 1
"""Values of `steps.kind`."""
FROM_KERNEL = ("running_ns", "core_wait_ns", "preemptions", "major_faults")
"""Columns that are -1 where they are not known."""
COLUMNS = tuple(column.name for column in TABLES["steps"].columns if column.name not in ("thread", "kind"))
_KEPT = ("first", "wall_min_ns", "wall_max_ns", *FROM_KERNEL)
ADDITIVE = tuple(name for name in COLUMNS if name not in _KEPT)
"""Columns that add up and are always known."""

Sums = Mapping[str, int]
"""Of some steps, by COLUMNS."""


@dataclass(frozen=True)
class StepRows:
    """Of one thread, or of several added up. `spans`: consecutive steps in their order; `slowest`: single ones, the
    slowest first; `walls`: steps by bin."""

    spans: tuple[Sums, ...] = ()
    slowest: tuple[Sums, ...] = ()
    walls: Mapping[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(span["count"] for span in self.spans)


def untimed(steps: StepRows, record: Mapping[str, Any]) -> int:
    """How many steps ended beside those that were timed, of a process that says `record` of itself. The first one's end
    is the first border that is known, so it is not among them; unless its beginning is known as well: the training
    profiler's start() marks it, and in a file that goes on where another one ended it is the end of the step before."""
    marked = bool(steps.spans) and steps.spans[0]["first"] == 0
    return 0 if marked or record.get("first_step_begun") is True else 1


def one_step(number: int, wall_ns: int, **counted: int) -> dict[str, int]:
    """The sums of one step; what is not given counts nothing, or is not known where the kernel would tell."""
    made = dict.fromkeys(COLUMNS, 0) | dict.fromkeys(FROM_KERNEL, -1)
    walls = {"wall_ns": wall_ns, "wall_min_ns": wall_ns, "wall_max_ns": wall_ns}
    return made | {"first": number, "count": 1, "counted": int(bool(counted)), **walls, **counted}


def of_steps(steps: Iterable[Sums]) -> StepRows:
    """The rows of single steps, as the profiled process makes them."""
    spans = sorted(steps, key=lambda one: one["first"])
    walls: dict[int, int] = {}
    for one in spans:
        walls[bin_of(one["wall_ns"])] = walls.get(bin_of(one["wall_ns"]), 0) + 1
    size = 1
    while -(-len(spans) // size) > MOST_SPANS:
        size *= 2
    held = [added(spans[begin : begin + size]) for begin in range(0, len(spans), size)]
    return StepRows(tuple(held), _slowest(spans), dict(sorted(walls.items())))


def added(sums: Iterable[Sums]) -> dict[str, int]:
    """Steps together. What the kernel did not tell of some that were counted is not known of all."""
    listed = list(sums)
    made = {name: sum(one[name] for one in listed) for name in ADDITIVE}
    made["first"] = min(one["first"] for one in listed)
    made["wall_min_ns"] = min(one["wall_min_ns"] for one in listed)
    made["wall_max_ns"] = max(one["wall_max_ns"] for one in listed)
    counted = [one for one in listed if one["counted"]]
    for name in FROM_KERNEL:
        known = bool(counted) and all(one[name] >= 0 for one in counted)
        made[name] = sum(one[name] for one in counted) if known else -1
    return {name: made[name] for name in COLUMNS}


def together(parts: Iterable[StepRows]) -> StepRows:
    """Threads of several ranks as one, their steps joined by number."""
    listed = [part for part in parts if part.spans]
    if len(listed) < 2:
        return listed[0] if listed else StepRows()
    size = max(_size(part) for part in listed)
    firsts = [span["first"] for part in listed for span in part.spans]
    while len({first // size for first in firsts}) > MOST_SPANS:
        size *= 2
    buckets: dict[int, list[Sums]] = {}
    walls: dict[int, int] = {}
    for part in listed:
        for span in part.spans:
            buckets.setdefault(span["first"] // size, []).append(span)
        for number, count in part.walls.items():
            walls[number] = walls.get(number, 0) + count
    slowest = _slowest(one for part in listed for one in part.slowest)
    return StepRows(tuple(added(buckets[key]) for key in sorted(buckets)), slowest, dict(sorted(walls.items())))


def between(now: StepRows, before: StepRows) -> StepRows:
    """The steps of `now` that `before`, an earlier state of the same thread, had not. The shortest and longest of a row
    that both have are bounds."""
    if not before.spans or not now.spans:
        return now
    ends = [span["first"] for span in now.spans[1:]]
    earlier: list[list[Sums]] = [[] for _ in now.spans]
    for span in before.spans:
        earlier[int(np.searchsorted(ends, span["first"], side="right"))].append(span)
    left = []
    for span, had in zip(now.spans, earlier, strict=True):
        less = added(had) if had else None
        if less is None:
            left.append(dict(span))
        elif less["count"] < span["count"]:
            left.append(_less(span, less))
    held = {tuple(one.values()) for one in before.slowest}
    slowest = tuple(one for one in now.slowest if tuple(one.values()) not in held)
    walls = {number: count - before.walls.get(number, 0) for number, count in now.walls.items()}
    return StepRows(tuple(left), slowest, {number: count for number, count in walls.items() if count > 0})


def _less(span: Sums, less: Sums) -> dict[str, int]:
    made = {**span, **{name: span[name] - less[name] for name in ADDITIVE}, "first": span["first"] + less["count"]}
    for name in FROM_KERNEL:
        if less["counted"] and made["counted"]:
            made[name] = span[name] - less[name] if span[name] >= 0 and less[name] >= 0 else -1
        elif not made["counted"]:
            made[name] = -1
    return made


def rows_of(tables: Tables) -> dict[int, StepRows]:
    """Of every thread that crossed borders of steps, by its row."""
    made: dict[int, tuple[list[Sums], list[Sums], dict[int, int]]] = {}
    table, walls = tables["steps"], tables["step_walls"]
    columns = [table[name].tolist() for name in COLUMNS]
    for thread, kind, *values in zip(table["thread"].tolist(), table["kind"].tolist(), *columns, strict=True):
        spans, slowest, _ = made.setdefault(thread, ([], [], {}))
        (spans if kind == SPAN else slowest).append(dict(zip(COLUMNS, values, strict=True)))
    for thread, number, count in zip(*(walls[name].tolist() for name in ("thread", "bin", "count")), strict=True):
        bins = made.setdefault(thread, ([], [], {}))[2]
        bins[number] = bins.get(number, 0) + count
    return {thread: StepRows(tuple(one[0]), tuple(one[1]), one[2]) for thread, one in made.items()}


def columns_of(rows: Mapping[int, StepRows]) -> dict[str, dict[str, Array]]:
    """Both tables, by row of the thread."""
    steps, walls = [], []
    for thread in sorted(rows):
        one = rows[thread]
        for kind, listed in ((SPAN, one.spans), (SLOW, one.slowest)):
            steps += [{"thread": thread, "kind": kind, **sums} for sums in listed]
        walls += [{"thread": thread, "bin": number, "count": one.walls[number]} for number in sorted(one.walls)]
    return {"steps": columns_from_rows("steps", steps), "step_walls": columns_from_rows("step_walls", walls)}


def _slowest(steps: Iterable[Sums]) -> tuple[Sums, ...]:
    ordered = sorted(steps, key=lambda one: (-one["wall_ns"], *one.values()))
    return tuple(ordered[:MOST_SLOWEST])


def _size(rows: StepRows) -> int:
    """Steps in each row of consecutive ones, of one thread: a power of two."""
    apart = [second["first"] - first["first"] for first, second in pairwise(rows.spans)]
    return 1 << (max(1, *apart).bit_length() - 1) if apart else 1
