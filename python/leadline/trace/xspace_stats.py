"""Statistics of the events of a profile of XLA as columns: which events have one, and what it is.

A column that no event has is not there, and what stands in place of one takes no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

Rows = NDArray[np.int64]

NOT_SAID = -(2**63)


@dataclass(frozen=True)
class Stat:
    """What some events tell: rows of the trace's events, in order, and what each says."""

    rows: Rows
    values: Rows

    def of(self, wanted: NDArray[np.bool_]) -> Stat:
        """What the wanted events tell; `wanted` has a value for every event of the trace."""
        mine = wanted[self.rows]
        return Stat(self.rows[mine], self.values[mine])


class Stats:
    """Of all events that the reader found; `rows` choose and order those that are asked for."""

    def __init__(self, columns: Mapping[str, Any], size: int) -> None:
        self._stats: dict[str, NDArray[Any]] = {name: np.asarray(column) for name, column in columns.items()}
        self._size = size

    def says(self, name: str) -> NDArray[np.bool_]:
        """Which events have that statistic, of all that the reader found."""
        column = self._stats.get(name)
        return np.broadcast_to(np.False_, self._size) if column is None else column != NOT_SAID

    def number(self, name: str, nothing: int, rows: Rows) -> NDArray[Any]:
        column = self._stats.get(name)
        if column is None:
            return np.broadcast_to(np.int64(nothing), rows.size)
        column = column[rows]
        return np.where(column == NOT_SAID, nothing, column)

    def text(self, name: str, rows: Rows) -> NDArray[Any]:
        column = self._stats.get(name)
        return np.broadcast_to(np.uint32(0), rows.size) if column is None else column[rows]

    def stat(self, name: str, rows: Rows) -> Stat:
        column = self.number(name, NOT_SAID, rows)
        said = np.flatnonzero(column != NOT_SAID)
        return Stat(said, column[said])

    def joined(self, kind: str, number: str, rows: Rows) -> Stat:
        """One number for the type and the id of a flow."""
        told = self.stat(number, rows)
        kinds = self.number(kind, 0, rows[told.rows])
        return Stat(told.rows, (told.values * 64 + kinds) & (2**62 - 1))

    def flows(self) -> NDArray[np.bool_]:
        return self.says("_p") | self.says("_c")


def in_order(rows: Rows, start_ps: Rows, lasted_ps: Rows) -> Rows:
    """Rows by their start in nanoseconds, of those that start together the longest first. Lines are in order by
    themselves, which makes putting them together cheap; few events start together."""
    start_ns = start_ps[rows] // 1000
    order = np.argsort(start_ns, kind="stable")
    rows, start_ns = rows[order], start_ns[order]
    same = np.flatnonzero(start_ns[1:] == start_ns[:-1])
    together = np.union1d(same, same + 1)
    end_ns = (start_ps[rows[together]] + lasted_ps[rows[together]]) // 1000
    rows[together] = rows[together][np.lexsort((-end_ns, start_ns[together]))]
    return rows


def of_lines(places: NDArray[np.int32], line_of: NDArray[Any]) -> NDArray[np.int32]:
    """What is known of lines, for every event."""
    return places[line_of] if (places >= 0).any() else np.broadcast_to(np.int32(-1), line_of.size)
