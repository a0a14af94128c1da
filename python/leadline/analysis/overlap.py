"""Wall time of a window as compute, exposed communication, exposed copies and idle: four parts that add up exactly.

With C, Y, N the unions of computing, copying and communicating intervals inside the window W: compute = |C|, of it
overlapped = |C and N|; exposed communication = |N - C|; exposed copies = |Y - (C or N)|; idle = |W| - |C or N or Y|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

Intervals = NDArray[np.int64]
"""Rows of (start, end) in nanoseconds, in any order, which may overlap."""


@dataclass(frozen=True)
class WallSplit:
    """Nanoseconds; `compute_ns` + `exposed_communication_ns` + `exposed_copy_ns` + `idle_ns` = `window_ns`."""

    window_ns: int
    compute_ns: int
    overlapped_ns: int
    communication_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int


def wall_split(windows: Intervals, compute: Intervals, communication: Intervals, copies: Intervals) -> WallSplit:
    """Split the time of `windows`, which may be several steps with other things between them."""
    places = np.unique(np.concatenate([part.reshape(-1) for part in (windows, compute, communication, copies)]))
    if places.size < 2:
        return WallSplit(0, 0, 0, 0, 0, 0, 0)
    length = np.diff(places)
    inside, c, n, y = (_covered(part, places) for part in (windows, compute, communication, copies))

    def sum_of(which: NDArray[np.bool_]) -> int:
        return int(length[which & inside].sum())

    return WallSplit(
        window_ns=sum_of(inside),
        compute_ns=sum_of(c),
        overlapped_ns=sum_of(c & n),
        communication_ns=sum_of(n),
        exposed_communication_ns=sum_of(n & ~c),
        exposed_copy_ns=sum_of(y & ~c & ~n),
        idle_ns=sum_of(~(c | n | y)),
    )


def _covered(part: Intervals, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each stretch between two places whether some interval covers it."""
    change = np.zeros(places.size, np.int64)
    if part.size:
        np.add.at(change, np.searchsorted(places, part[:, 0]), 1)
        np.add.at(change, np.searchsorted(places, part[:, 1]), -1)
    covered: NDArray[np.bool_] = np.cumsum(change)[:-1] > 0
    return covered
