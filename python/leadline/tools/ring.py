"""Rows of 64-bit numbers from one thread to one reader, in memory of fixed size.

The writer never waits: what finds the ring full is counted in `lost`. Only the writer moves `head`, only the reader
moves `tail`, and rows are whole before `head` says so.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray


class Ring:
    """`columns` numbers a row, room for `rows` of them (a power of two)."""

    def __init__(self, columns: int, rows: int = 1 << 16) -> None:
        self._pack = struct.Struct(f"={columns}q").pack_into
        self._row_bytes = 8 * columns
        self._mask = rows - 1
        self._rows = rows
        self._buffer = bytearray(rows * self._row_bytes)
        self._view = np.frombuffer(self._buffer, np.int64).reshape(rows, columns)
        self.head = 0
        self.tail = 0
        self.lost = 0

    def put(self, *row: int) -> bool:
        """Add a row; True when the ring is half full, so that the reader should be woken."""
        head = self.head
        held = head - self.tail
        if held >= self._rows:
            self.lost += 1
            return True
        self._pack(self._buffer, (head & self._mask) * self._row_bytes, *row)
        self.head = head + 1
        return held >= self._rows >> 1

    def take(self, head: int | None = None) -> NDArray[np.int64]:
        """What has come until `head` (now), as an array of rows; it is a copy."""
        end = self.head if head is None else head
        begin = self.tail
        if begin == end:
            return self._view[:0]
        rows: NDArray[np.int64] = self._view[np.arange(begin, end) & self._mask]
        self.tail = end
        return rows
