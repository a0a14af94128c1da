"""Sets of stretches of time: begins and ends in order, none touching another."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
Intervals: TypeAlias = tuple[Numbers, Numbers]


def union(start_ns: Numbers, end_ns: Numbers) -> Intervals:
    """The stretches of time that at least one of the given ones covers, in order."""
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum.accumulate(end_ns[order]) if start_ns.size else end_ns
    opens = np.concatenate(([True], start[1:] > end[:-1])) if start.size else np.empty(0, bool)
    closes = np.concatenate((np.flatnonzero(opens)[1:] - 1, [start.size - 1])) if start.size else np.empty(0, np.int64)
    return start[opens], end[closes]


def length(intervals: Intervals) -> int:
    """Nanoseconds that they cover."""
    return int((intervals[1] - intervals[0]).sum())


def common(left: Intervals, right: Intervals) -> int:
    """Nanoseconds that both cover."""
    both = union(np.concatenate((left[0], right[0])), np.concatenate((left[1], right[1])))
    return length(left) + length(right) - length(both)
