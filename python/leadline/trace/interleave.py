"""Records of several sizes in one order: what the writers of CTF and Perfetto need, without a loop over events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_GROUPS = 8  # that a word of 64 bits has room for

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
        width = rows.shape[1]
        if not rows.size:
            continue
        # a record as one item: a view that begins at every byte takes each with a single copy
        record = np.dtype((np.void, width))
        everywhere: NDArray[np.void] = np.ndarray((data.size - width + 1,), record, buffer=data, strides=(1,))
        everywhere[begins[places]] = np.ascontiguousarray(rows).view(record).ravel()
    return data, begins


def varints(values: Rows, width: int) -> Matrix:
    """Non-negative integers as varints of protobuf, all of `width` bytes: readers accept groups that are zero."""
    groups = _grouped(values.astype(np.uint64, copy=False))
    found: Matrix = groups.view(np.uint8).reshape(-1, 8)[:, :width]
    if width > _GROUPS:
        found = np.concatenate([found, _rest(values.astype(np.uint64, copy=False), width - _GROUPS)], axis=1)
    found[:, : width - 1] |= 0x80
    return found


def signed_varints(values: Rows) -> Matrix:
    """Integers of any sign as varints of protobuf (int64), all of ten bytes."""
    return varints(values.astype(np.int64, copy=False).view(np.uint64), 10)


def _grouped(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The lower 56 bits, seven in each byte: halves move apart, then quarters, then eighths."""
    found = np.empty(values.size, dtype="<u8")
    np.bitwise_and(values, np.uint64((1 << 7 * _GROUPS) - 1), out=found)
    high = np.empty_like(found)
    for mask, by in ((0x00FFFFFFF0000000, 4), (0x0FFFC0000FFFC000, 2), (0x3F803F803F803F80, 1)):
        np.bitwise_and(found, np.uint64(mask), out=high)
        np.bitwise_xor(found, high, out=found)
        np.left_shift(high, np.uint64(by), out=high)
        np.bitwise_or(found, high, out=found)
    return found


def _rest(values: NDArray[np.uint64], count: int) -> Matrix:
    """What is above 56 bits, in `count` groups of seven."""
    shifts = (7 * np.arange(_GROUPS, _GROUPS + count)).astype(np.uint64)
    return ((values[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)


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
