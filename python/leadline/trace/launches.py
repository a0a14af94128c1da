"""Which call launched which work of a device, where a file gives one number to several calls.

A number tells a launch within a process and until it comes again: files of several ranks repeat each other's, counters
wrap, and older ROCm gives all copies the same. So a launch is sought by process, time and number: the last call of the
work's own process that carries its number and began before it. What has none keeps a number that no call has, and
counts as device work whose launch was not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Thread

_ROUNDING_NS = 10_000
"""By how much work may seem to begin before its launch: clocks of devices are matched with the host's to about that."""

Rows = NDArray[np.int64]
Events = dict[str, NDArray[Any]]


def number_launches(events: Events, threads: Sequence[Thread], labels: Sequence[int | str]) -> Rows:
    """Gives every launch a number of its own and its work the same, in the columns `correlation` and
    `awaits_correlation`, where numbers repeat; leaves them as they are where none does.

    events: in order of their start. labels: of every event the process that the file gives to device work, where that
    is not simply the number of the device, else -1; empty where it never is.

    Returns of every event the place of its process among those that launch work, -1 where nothing tells it.
    """
    kind, thread, number = events["kind"], events["thread"].astype(np.int64), events["correlation"].astype(np.int64)
    calls = np.flatnonzero(np.isin(kind, CALL_KINDS) & (thread >= 0))
    work = np.flatnonzero(np.isin(kind, DEVICE_KINDS) & (thread < 0))
    process_of_thread, programs = _programs(threads, thread[calls])
    owner: Rows = np.full(thread.size, -1, np.int64)
    owner[thread >= 0] = process_of_thread[thread[thread >= 0]]
    start = events["start_ns"].astype(np.int64)
    numbered = calls[number[calls] != 0]
    if programs > 1:
        owner[work] = _owners(events, work, numbered, owner, labels)
    else:
        owner[work] = programs - 1
    outer = numbered[~_inside_another(start, start + events["duration_ns"], thread, number, numbered)]
    early = _early(start, number, outer, work)
    # where most work seems to begin before its launch the device's clock is behind, and no launch is another's
    slack = _ROUNDING_NS + (int(early.max()) if early.size and float((early > 0).mean()) > 0.5 else 0)
    repeated = np.unique(number[outer]).size < outer.size
    if not repeated and not (early > slack).any():
        return owner
    fresh = number.copy()
    # calls in one another, as the driver's in the runtime's, are one launch: all have the number of the outer one
    above = dict(zip(outer.tolist(), range(1, outer.size + 1), strict=True))
    fresh[numbered] = [above.get(row, 0) for row in numbered.tolist()]
    inner = np.setdiff1d(numbered, outer)
    around = _last_before(owner, number, start, outer, inner, slack=0)
    fresh[inner] = np.where(around >= 0, fresh[around], 0)
    mine = _last_before(owner, number, start, outer, work, slack=slack)
    lone = work[(mine < 0) & (number[work] != 0)]
    fresh[work] = np.where(mine >= 0, fresh[mine], 0)
    fresh[lone] = outer.size + 1 + np.arange(lone.size)
    waits = np.flatnonzero(events["awaits_correlation"] > 0)
    if waits.size:
        awaited = number.copy()
        awaited[waits] = events["awaits_correlation"][waits]
        record = _last_before(owner, awaited, start, outer, waits, slack=0, sought=awaited)
        changed = events["awaits_correlation"].copy()
        changed[waits] = np.where(record >= 0, fresh[record], 0)
        events["awaits_correlation"] = changed
    events["correlation"] = fresh.astype(events["correlation"].dtype)
    return owner


def _programs(threads: Sequence[Thread], calling: Rows) -> tuple[Rows, int]:
    """Of every thread the place of its process among those that call the driver, -1 for others; and how many these
    are, in the order of their numbers, as ranks are started."""
    names = {threads[row].process for row in np.unique(calling).tolist()}
    ordered = sorted(names, key=lambda name: (isinstance(name, str), name if isinstance(name, int) else 0, str(name)))
    places = {name: place for place, name in enumerate(ordered)}
    return np.array([places.get(thread.process, -1) for thread in threads] or [-1], np.int64), len(places)


def _owners(events: Events, work: Rows, calls: Rows, owner: Rows, labels: Sequence[int | str]) -> Rows:
    """The process of each piece of work. All work of a device belongs to one process, and where the file gives devices
    processes of their own, all work of such a process: to the one whose launches explain the most of it, and among
    equals to the one that is left in the order of devices, as ranks take them."""
    device = events["device"][work].astype(np.int64)
    named = [labels[row] if labels else -1 for row in work.tolist()]
    groups: dict[tuple[int | str, int], list[int]] = {}
    for place, key in enumerate(zip(named, device.tolist(), strict=True)):
        groups.setdefault(key, []).append(place)
    programs = int(owner[calls].max(initial=0)) + 1
    start, number = events["start_ns"].astype(np.int64), events["correlation"].astype(np.int64)
    taken = [0] * programs
    found: Rows = np.full(work.size, -1, np.int64)
    for key in sorted(groups, key=lambda one: (str(one[0]), one[1])):
        places = np.array(groups[key])
        rows = work[places]
        explained = []
        for program in range(programs):
            as_if = owner.copy()
            as_if[rows] = program
            mine = _last_before(as_if, number, start, calls, rows, slack=_ROUNDING_NS)
            explained.append(int((mine >= 0).sum()))
        best = max(range(programs), key=lambda one: (explained[one], -taken[one], -one))
        if explained[best]:
            found[places] = best
            taken[best] += 1
    return found


def _last_before(
    owner: Rows, number: Rows, start: Rows, calls: Rows, rows: Rows, *, slack: int, sought: Rows | None = None
) -> Rows:
    """Of each row the last call of its process and number that began no later than it, -1 for none."""
    sought = number if sought is None else sought
    keys = np.stack((owner[calls], number[calls]))
    order = np.lexsort((start[calls], keys[1], keys[0]))
    sorted_calls = calls[order]
    # one column that sorts as (process, number, start): numbers of pairs, then times
    pairs, place = np.unique(
        np.concatenate((keys.T, np.stack((owner[rows], sought[rows]), axis=1))), axis=0, return_inverse=True
    )
    place = place.reshape(-1)
    del pairs
    of_calls, of_rows = place[: calls.size][order], place[calls.size :]
    found: Rows = np.full(rows.size, -1, np.int64)
    first = np.searchsorted(of_calls, of_rows, side="left")
    last = np.searchsorted(of_calls, of_rows, side="right")
    begins = start[sorted_calls]
    limits = (start[rows] + slack).tolist()
    for at, (low, high, when) in enumerate(zip(first.tolist(), last.tolist(), limits, strict=True)):
        if low < high and begins[low] <= when:
            found[at] = sorted_calls[low + int(np.searchsorted(begins[low:high], when, side="right")) - 1]
    return found


def _inside_another(start: Rows, end: Rows, thread: Rows, number: Rows, calls: Rows) -> NDArray[np.bool_]:
    """Whether a call runs inside of one of its thread and number, as the driver's in the runtime's."""
    order = np.lexsort((start[calls], number[calls], thread[calls]))
    rows = calls[order]
    same = (thread[rows][1:] == thread[rows][:-1]) & (number[rows][1:] == number[rows][:-1])
    inside = np.zeros(rows.size, np.bool_)
    inside[1:] = same & (start[rows][1:] < end[rows][:-1])
    found = np.zeros(rows.size, np.bool_)
    found[order] = inside
    return found


def _early(start: Rows, number: Rows, calls: Rows, work: Rows) -> Rows:
    """By how much work began before its launch (negative: after it), of the work whose number only one call has."""
    numbers, first, times = np.unique(number[calls], return_index=True, return_counts=True)
    if not numbers.size or not work.size:
        return np.empty(0, np.int64)
    place = np.searchsorted(numbers, number[work]).clip(max=numbers.size - 1)
    known = (numbers[place] == number[work]) & (number[work] != 0) & (times[place] == 1)
    found: Rows = start[calls[first[place[known]]]] - start[work[known]]
    return found
