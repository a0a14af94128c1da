"""The columns of a profile in memory: plain NumPy arrays under the names of the schema, and its string table.

Nothing here checks anything; `check.py` does, once, when a file is read. Arrays are shared, not copied: treat them as
read-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline import schema
from leadline._dataclass import dataclass

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = Mapping[str, Array]


class StringTable:
    """Text by row number, decoded when first asked for; bytes that are not UTF-8 become U+FFFD."""

    def __init__(self, data: Array, offsets: Array) -> None:
        self._data = np.ascontiguousarray(data, dtype=np.uint8).data
        self._offsets = offsets
        self._cache: dict[int, str] = {}

    def __len__(self) -> int:
        return max(0, len(self._offsets) - 1)

    def raw(self, index: int) -> bytes:
        """The bytes of string `index`."""
        return bytes(self._data[int(self._offsets[index]) : int(self._offsets[index + 1])])

    def all_raw(self) -> list[bytes]:
        """The bytes of every string, in order."""
        data, offsets = self._data.tobytes(), self._offsets.tolist()
        return [data[begin:end] for begin, end in pairwise(offsets)]

    def __getitem__(self, index: int) -> str:
        text = self._cache.get(index)
        if text is None:
            text = self._cache[index] = self.raw(index).decode("utf-8", "replace")
        return text

    def rows_equal(self, text: str) -> Array:
        """Rows whose bytes are exactly `text` in UTF-8, as an int64 array (one row in files that intern as they
        should)."""
        wanted = text.encode("utf-8", "surrogatepass")
        lengths = np.diff(self._offsets.astype(np.int64))
        candidates = np.flatnonzero(lengths == len(wanted))
        return np.array([row for row in candidates.tolist() if self.raw(row) == wanted], dtype=np.int64)


class StringBuilder:
    """Collects distinct strings; string 0 is empty."""

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {b"": 0}

    def add(self, text: str | bytes) -> int:
        """The row number of `text`, new or known."""
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return self._rows.setdefault(raw, len(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self, rows: Sequence[int] | None = None) -> dict[str, Array]:
        """The `strings` table; of the given rows only, in that order, where some are given."""
        texts = list(self._rows)
        texts = texts if rows is None else [texts[row] for row in rows]
        lengths = np.fromiter((len(raw) for raw in texts), dtype=np.uint64, count=len(texts))
        offsets = np.zeros(len(texts) + 1, dtype="<u8")
        np.cumsum(lengths, out=offsets[1:])
        return {"bytes": np.frombuffer(b"".join(texts), dtype="|u1"), "offsets": offsets}


@dataclass(frozen=True)
class Tables:
    """Every table of the schema, column by column; optional tables that the file lacks are there with no rows."""

    columns: Mapping[str, Columns]

    def __getitem__(self, table: str) -> Columns:
        return self.columns[table]

    def rows(self, table: str) -> int:
        """Number of rows; of `strings`, the number of strings."""
        if table == "strings":
            return max(0, len(self.columns["strings"]["offsets"]) - 1)
        return len(next(iter(self.columns[table].values())))

    @cached_property
    def strings(self) -> StringTable:
        return StringTable(self.columns["strings"]["bytes"], self.columns["strings"]["offsets"])


def empty_columns(table: str) -> dict[str, Array]:
    """The columns of `table` with no rows."""
    return {column.name: np.empty(0, dtype=column.dtype) for column in schema.TABLES[table].columns}


def columns_from_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Array]:
    """The columns of `table` from one mapping per row; every column must be named in every row."""
    listed = list(rows)
    return {
        column.name: np.array([row[column.name] for row in listed], dtype=column.dtype)
        for column in schema.TABLES[table].columns
    }
