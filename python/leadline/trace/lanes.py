"""Spans of one thread or queue as a sequence of begins and ends that every reader can nest.

Zins and Dagenais, algorithm 1 (reordering): a record that carries begin and end becomes two events. At one moment what
ends comes before what begins, inner ends before outer, outer begins before inner; a span without length begins and
ends with nothing between. Spans that overlap without nesting go to further lanes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

Rows = NDArray[np.int64]
_MOST_LANES = 16


@dataclass(frozen=True)
class Lane:
    """Spans that nest: row numbers in order of start, outer first, and where each of them ends."""

    rows: Rows
    start_ns: Rows
    end_ns: Rows

    def later(self, by_ns: int) -> Lane:
        """The same spans, all of them moved."""
        moved = Lane(self.rows, self.start_ns + by_ns, self.end_ns + by_ns)
        if "places" in self.__dict__:
            moved.__dict__["places"] = self.places
        return moved

    @cached_property
    def places(self) -> tuple[Rows, Rows]:
        """For every span the place of its begin and of its end in the lane's sequence of 2n events."""
        count = self.rows.size
        own = np.arange(count)
        begins = 2 * own - _depths(self.start_ns, self.end_ns)
        inside = np.searchsorted(self.start_ns, self.end_ns, side="left") - own
        size = np.where(self.end_ns > self.start_ns, inside, 1)
        return begins, begins + 2 * size - 1


def lanes(rows: Rows, start_ns: Rows, end_ns: Rows) -> tuple[list[Lane], int]:
    """The spans (`start_ns` and `end_ns` of each of `rows`, in any order) in as few lanes as first-fit gives, at most
    `_MOST_LANES`; and how many ends had to be moved to an earlier time, to nest in the last of them or not to lie
    before their begin."""
    negative = end_ns < start_ns
    end_ns = np.maximum(end_ns, start_ns)
    whole = Lane(rows, start_ns, end_ns)
    if not in_order(start_ns, end_ns):
        order = np.lexsort((-end_ns, start_ns))
        whole = Lane(rows[order], start_ns[order], end_ns[order])
    moved = int(negative.sum())
    if _nests(whole):
        return [whole], moved
    lane_of, ends, cut = _first_fit(whole.start_ns, whole.end_ns)
    found = []
    for number in range(int(lane_of.max(initial=0)) + 1):
        mine = lane_of == number
        found.append(Lane(whole.rows[mine], whole.start_ns[mine], ends[mine]))
    return found, moved + cut


def in_order(start: Rows, end: Rows) -> bool:
    """Whether spans stand by start, and outer before inner where they begin together."""
    later = start[1:] > start[:-1]
    return bool((later | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))).all())


def _depths(start: Rows, end: Rows) -> Rows:
    """How many spans are open where each begins, of spans that nest and are ordered by start and outer first."""
    own = np.arange(start.size)
    ended = np.searchsorted(np.sort(end), start, side="right")
    # a span without length is not over before itself and those that begin with it
    empty = np.concatenate(([0], np.cumsum(end == start)))
    last = np.searchsorted(start, start, side="right")
    depths: Rows = own - (ended - (empty[last] - empty[own]))
    return depths


def _nests(lane: Lane) -> bool:
    """Whether no two spans overlap without one being inside the other."""
    if lane.rows.size < 2:
        return True
    begins, ends = lane.places
    if begins.min() < 0 or ends.max() >= 2 * lane.rows.size:
        return False
    taken = np.zeros(2 * lane.rows.size, dtype=np.bool_)
    taken[begins] = taken[ends] = True
    if not taken.all():  # as many places as begins and ends: each is taken once
        return False
    time = np.empty(2 * lane.rows.size, dtype=np.int64)
    time[begins], time[ends] = lane.start_ns, lane.end_ns
    return bool((time[1:] >= time[:-1]).all())


def _first_fit(start: Rows, end: Rows) -> tuple[Rows, Rows, int]:
    lane_of: list[int] = []
    ends: list[int] = []
    open_ends: list[list[int]] = []
    cut = 0
    for begin, finish in zip(start.tolist(), end.tolist(), strict=True):
        for stack in open_ends:
            while stack and stack[-1] <= begin:
                stack.pop()
        fitting = (number for number, stack in enumerate(open_ends) if not stack or finish <= stack[-1])
        number = next(fitting, len(open_ends))
        if number == _MOST_LANES:
            number, finish, cut = number - 1, open_ends[-1][-1], cut + 1
        elif number == len(open_ends):
            open_ends.append([])
        lane_of.append(number)
        ends.append(finish)
        open_ends[number].append(finish)
    return np.array(lane_of, dtype=np.int64), np.array(ends, dtype=np.int64), cut
