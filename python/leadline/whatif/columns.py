"""A table of NumPy columns that copies cheaply (columns are shared until one side writes) and appends fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ColumnTable:
    """Equal-length columns. Read with `table[name]` (read-only view), write through `table.write(name)`."""

    __slots__ = ("_columns", "_owned", "_rows")

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns: dict[str, NDArray[Any]] = dict(columns)
        lengths = {array.shape[0] for array in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of one table differ in length: {sorted(lengths)}")
        self._rows = lengths.pop() if lengths else 0
        self._owned: set[str] = set()

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        view = self._columns[name][: self._rows]
        view.flags.writeable = False
        return view

    def copy(self) -> ColumnTable:
        """A second table over the same arrays; the first writer of a column, on either side, copies it."""
        other = ColumnTable.__new__(ColumnTable)
        other._columns = dict(self._columns)
        other._rows = self._rows
        other._owned = set()
        self._owned = set()
        return other

    def write(self, name: str) -> NDArray[Any]:
        """A view of the column that may be written; valid until the next append or copy."""
        if name not in self._owned:
            self._columns[name] = self._columns[name][: self._rows].copy()
            self._owned.add(name)
        return self._columns[name][: self._rows]

    def append(self, **values: Any) -> int:
        """Add rows: a scalar or an array per column, all columns named. Returns the first new row."""
        count = max((np.size(value) for value in values.values() if np.ndim(value)), default=1)
        if set(values) != set(self._columns):
            raise ValueError(f"append needs exactly the columns {sorted(self._columns)}")
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
        return first

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows where `mask` is false."""
        if bool(mask.all()):
            return
        for name, array in self._columns.items():
            self._columns[name] = array[: self._rows][mask]
        self._owned = set(self._columns)
        self._rows = int(mask.sum())
