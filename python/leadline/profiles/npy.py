"""One column: an `.npy` member read without trust in its header.

NumPy's own reader evaluates the header as Python literals and allocates what the shape says. Here the header must be
the one line that `numpy.save` writes for a 1-D array, of the expected type, and shape times item size must be the
member's size, before the array is made. Object arrays have no type that a schema could expect, so nothing is ever
unpickled.
"""

from __future__ import annotations

import re
import struct
from typing import IO

import numpy as np

from leadline.profiles.tables import Array

_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_HEADER = re.compile(
    rb"\{\s*'descr':\s*'(?P<descr>[^']{1,64})',\s*'fortran_order':\s*(?:True|False),\s*"
    rb"'shape':\s*\((?P<length>\d{1,19}),\s*\),?\s*\}\s*"
)


class NpyError(ValueError):
    """The member is not the column it should be; the message completes "its part NAME ..."."""


def read_column(stream: IO[bytes], size: int, dtype: str) -> Array:
    """The 1-D array of type `dtype` in a member of `size` bytes, as a fresh C-contiguous array; raises NpyError."""
    start = _exactly(stream, 8)
    if start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise NpyError("is not a NumPy array of a known version")
    wide = start[6] > 1
    (header_bytes,) = struct.unpack("<I" if wide else "<H", _exactly(stream, 4 if wide else 2))
    if header_bytes > _MAX_HEADER_BYTES:
        raise NpyError(f"has a header of {header_bytes} bytes")
    header = _HEADER.fullmatch(_exactly(stream, header_bytes))
    if not header:
        raise NpyError("is not a one-dimensional NumPy array of plain numbers")
    expected = np.dtype(dtype)
    descr = header["descr"].decode("latin-1")
    if descr != expected.str:
        raise NpyError(f"holds values of type {descr!r} instead of {expected.str!r}")
    length = int(header["length"])
    data_bytes = size - 8 - (4 if wide else 2) - header_bytes
    if length * expected.itemsize != data_bytes:
        raise NpyError(
            f"declares {length} values of {expected.itemsize} bytes but has {max(0, data_bytes)} bytes of them"
        )
    return _filled(stream, length, expected)


def _filled(stream: IO[bytes], length: int, dtype: np.dtype[np.generic]) -> Array:
    values = np.empty(length, dtype=dtype)
    target = values.view(np.uint8).data
    done = 0
    while done < len(target):
        got = stream.read(min(_CHUNK_BYTES, len(target) - done))
        if not got:
            raise NpyError("ends before its last value")
        target[done : done + len(got)] = got
        done += len(got)
    if stream.read(1):  # also makes zipfile compare the checksum
        raise NpyError("continues after its last value")
    return values


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise NpyError("ends within its header")
    return data
