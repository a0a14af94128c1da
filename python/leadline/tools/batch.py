"""Events as columns: what a tool's method is called with.

A column is a read-only int64 array that knows what its numbers are numbers of (`ref`), so that a table can show names
and paths where a tool has only added up numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.events import EVENTS, EventInfo

Int64 = NDArray[np.int64]


class Column(np.ndarray[Any, np.dtype[np.int64]]):
    """A column of a batch. `ref`: launch, object, name, place or empty. `batch`: the rows that it belongs to, None
    once it has been sliced or computed with."""

    ref: str
    batch: Batch | None

    def __array_finalize__(self, source: Any) -> None:
        self.ref = getattr(source, "ref", "") or ""
        self.batch = None


class Batch:
    """Rows of one event, in the order in which they happened on each thread."""

    def __init__(self, event: EventInfo, columns: Mapping[str, Int64]) -> None:
        self.event = event
        self._raw = dict(columns)
        self._columns: dict[str, Column] = {}
        self.size = len(next(iter(columns.values()))) if columns else 0

    def __len__(self) -> int:
        return self.size

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    def __getitem__(self, name: str) -> Column:
        """A column; raises KeyError with the names there are."""
        known = self._columns.get(name)
        if known is None:
            if name not in self._raw:
                raise KeyError(f"{self.event.name} has no column {name!r} here; it has {', '.join(sorted(self._raw))}")
            known = self._raw[name].view(Column)
            info = self.event.column(name)
            known.ref = info.ref if info is not None else ""
            known.batch = self
            known.flags.writeable = False
            self._columns[name] = known
        return known

    @property
    def nbytes(self) -> int:
        """Memory of all columns."""
        return sum(values.nbytes for values in self._raw.values())

    def columns(self) -> dict[str, Int64]:
        """All columns as plain arrays."""
        return dict(self._raw)

    def where(self, chosen: NDArray[np.bool_] | Int64) -> Batch:
        """The rows of a mask or of row numbers, as a batch of their own."""
        return Batch(self.event, {name: values[chosen] for name, values in self._raw.items()})

    def with_column(self, name: str, values: Int64) -> Batch:
        """The same rows with one more column."""
        return Batch(self.event, {**self._raw, name: values})


_ZERO_IF_UNKNOWN = {"launch": ("blocks", "threads")}
"""Columns that few backends know; the others need not name them."""


def batch_of(event: str, columns: Mapping[str, Any]) -> Batch:
    """A batch of an event, from anything that NumPy makes an int64 array of."""
    arrays = {name: np.asarray(values, np.int64) for name, values in columns.items()}
    for name in _ZERO_IF_UNKNOWN.get(event, ()):
        if name not in arrays:
            arrays[name] = np.broadcast_to(np.int64(0), len(next(iter(arrays.values()), ())))  # takes no memory
    return Batch(EVENTS[event], arrays)
