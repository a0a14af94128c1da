"""Records of several sizes in one order: what the writers of CTF and Perfetto need, without a loop over events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 16

Rows = NDArray[np.int64]
Matrix = NDArray[np.uint8]


def interleaved(parts: Sequence[tuple[Rows, Matrix]]) -> tuple[NDArray[np.uint8], Rows]:
    """All records one after the other, and where each begins (one more than there are records).

    A part is the places of its records in the common order, 0 to n-1 over all parts, and their bytes, one row each.
    """
    sizes = np.zeros(sum(places.size for places, _ in parts) + 1, dtype=np.int64)
    for places, rows in parts:
        sizes[places + 1] = rows.shape[1]
    begins = np.cumsum(sizes)
    data = np.empty(int(begins[-1]), dtype=np.uint8)
    for places, rows in parts:
        inside = np.arange(rows.shape[1])
        for low in range(0, len(rows), _CHUNK):
            at = begins[places[low : low + _CHUNK]]
            data[at[:, None] + inside] = rows[low : low + _CHUNK]
    return data, begins


def varints(values: Rows, width: int) -> Matrix:
    """Non-negative integers as varints of protobuf, all of `width` bytes: readers accept groups that are zero."""
    shifts = 7 * np.arange(width)
    groups = (values.astype(np.int64)[:, None] >> shifts) & 0x7F
    groups[:, :-1] |= 0x80
    return groups.astype(np.uint8)


def signed_varints(values: Rows) -> Matrix:
    """Integers of any sign as varints of protobuf (int64), all of ten bytes."""
    shifts = (7 * np.arange(10)).astype(np.uint64)
    groups = (values.astype(np.int64).view(np.uint64)[:, None] >> shifts) & np.uint64(0x7F)
    groups[:, :-1] |= np.uint64(0x80)
    return groups.astype(np.uint8)


def rows_of(count: int, *pieces: bytes | Matrix) -> Matrix:
    """`count` rows: bytes that all share and columns of bytes, side by side."""
    width = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
    found = np.empty((count, width), dtype=np.uint8)
    at = 0
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else piece.shape[1]
        found[:, at : at + size] = np.frombuffer(piece, dtype=np.uint8) if isinstance(piece, bytes) else piece
        at += size
    return found
