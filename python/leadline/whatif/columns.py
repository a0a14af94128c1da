"""A table of NumPy columns that copies cheaply (columns are shared until one side writes) and appends fast.

Single rows are collected as they come and joined to the columns when someone looks at these, so a scenario that
inserts ten thousand tasks pays for one append. A single value of a row that has just been added is found without that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

_versions = count(1)  # of all tables, so that what differs never has the same


class ColumnTable:
    """Equal-length columns. Read with `table[name]` (read-only view), write through `table.write(name)`."""

    __slots__ = ("_columns", "_grown", "_names", "_owned", "_pending", "_rows", "_writes")

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns: dict[str, NDArray[Any]] = dict(columns)
        self._names = tuple(self._columns)
        lengths = {array.shape[0] for array in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of one table differ in length: {sorted(lengths)}")
        self._rows = lengths.pop() if lengths else 0
        self._owned: set[str] = set()
        self._pending: list[tuple[Any, ...]] = []
        self._writes: dict[str, int] = {}
        self._grown = 0

    def __len__(self) -> int:
        return self._rows + len(self._pending)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if self._pending:
            self._join()
        view = self._columns[name][: self._rows]
        view.flags.writeable = False
        return view

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns, to look at."""
        return {name: self[name] for name in self._names}

    def value(self, name: str, row: int) -> Any:
        """One value; cheaper than a column when rows were added a moment ago."""
        if row < self._rows:
            return self._columns[name][row]
        return self._pending[row - self._rows][self._names.index(name)]

    def writes(self, name: str) -> int:
        """A number that a column gets whenever it is handed out for writing or loses rows, and keeps in copies: what
        was worked out from it earlier is stale when this has changed."""
        return self._writes.get(name, 0)

    def stamp(self, *names: str) -> tuple[int, ...]:
        """The same for two copies only as long as they have the same rows and values in these columns."""
        return self._grown, *map(self.writes, names)

    def copy(self) -> ColumnTable:
        """A second table over the same arrays; the first writer of a column, on either side, copies it."""
        if self._pending:
            self._join()
        other = ColumnTable.__new__(ColumnTable)
        other._columns = dict(self._columns)
        other._names = self._names
        other._rows = self._rows
        other._owned = set()
        other._pending = []
        other._writes = dict(self._writes)
        other._grown = self._grown
        self._owned = set()
        return other

    def write(self, name: str) -> NDArray[Any]:
        """A view of the column that may be written; valid until the next append or copy."""
        if self._pending:
            self._join()
        self._writes[name] = next(_versions)
        if name not in self._owned:
            self._columns[name] = self._columns[name][: self._rows].copy()
            self._owned.add(name)
        return self._columns[name][: self._rows]

    def append(self, **values: Any) -> int:
        """Add rows: a scalar or an array per column, all columns named. Returns the first new row."""
        if values.keys() != self._columns.keys():
            raise ValueError(f"append needs exactly the columns {sorted(self._columns)}")
        rows = max((np.size(value) for value in values.values() if np.ndim(value)), default=1)
        first = len(self)
        self._grown = next(_versions)
        if rows == 1:
            self._pending.append(
                tuple(values[name] if not np.ndim(values[name]) else values[name][0] for name in self._names)
            )
            return first
        if self._pending:
            self._join()
        self._extend(rows, values)
        return first

    def append_row(self, *values: Any) -> int:
        """Add one row of scalars in the order of the columns. Returns its number."""
        if len(values) != len(self._names):
            raise ValueError(f"a row needs {len(self._names)} values, in the order of {list(self._names)}")
        self._pending.append(values)
        self._grown = next(_versions)
        return len(self) - 1

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows where `mask` is false."""
        if self._pending:
            self._join()
        if bool(mask.all()):
            return
        for name, array in self._columns.items():
            self._columns[name] = array[: self._rows][mask]
            self._writes[name] = next(_versions)
        self._owned = set(self._columns)
        self._rows = int(mask.sum())

    def _join(self) -> None:
        rows, self._pending = self._pending, []
        self._extend(len(rows), dict(zip(self._names, zip(*rows, strict=True), strict=True)))

    def _extend(self, count: int, values: Mapping[str, Any]) -> None:
        first, end = self._rows, self._rows + count
        for name, value in values.items():
            array = self._columns[name]
            if name not in self._owned or array.shape[0] < end:
                grown = np.empty(max(end, end + end // 4), dtype=array.dtype)
                grown[:first] = array[:first]
                self._columns[name] = array = grown
                self._owned.add(name)
            array[first:end] = value
        self._rows = end
