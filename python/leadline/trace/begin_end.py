"""Spans that a trace tells in two events, their begin (B) and their end (E): an end is that of the last begin of its
thread that is still open, in the order of time, and of the file where times are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_END = -2


def paired(
    ts: NDArray[np.float64],
    dur: NDArray[np.float64],
    row: NDArray[np.int64],
    track: NDArray[Any],
    at: NDArray[np.float64],
    low_us: float = -np.inf,
) -> tuple[NDArray[np.bool_], int]:
    """Which events to keep, and how many begins and ends have no other half. Fills `dur` of those that were open.

    row: the event that a begin is, -1 for one that does not count, -2 for an end; track: whose thread. low_us: what
    ends before is left out, as it is of other events.
    """
    kept = np.ones(ts.size, np.bool_)
    open_ones: dict[int, list[int]] = {}
    lonely = 0
    order = np.argsort(at, kind="stable")
    for event, thread, time in zip(row[order].tolist(), track[order].tolist(), at[order].tolist(), strict=True):
        inside = open_ones.setdefault(thread, [])
        if event != _END:
            inside.append(event)
        elif not inside:
            lonely += 1
        elif (begin := inside.pop()) >= 0:
            dur[begin] = time - ts[begin]
            kept[begin] = time >= low_us
    left = [begin for inside in open_ones.values() for begin in inside if begin >= 0]
    kept[left] = False
    return kept, lonely + len(left)
