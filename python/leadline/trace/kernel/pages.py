"""Pages of the kernel's ring buffer (include/linux/ring_buffer.h, kernel/trace/ring_buffer.c): where each event's data
lies and when it was.

A page begins with the time of its first event (8 bytes) and how much of it is used (low 20 bits of the next 8; bits 31
and 30: events were lost before it, and their number follows the data). An event begins with 5 bits of type or length
and 27 bits of time since the one before. All pages are walked in step, so that NumPy does the work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.tables import TraceError

_HEADER_BYTES = 16
_USED, _LOST, _LOST_STORED = (1 << 20) - 1, 1 << 31, 1 << 30
_PADDING, _EXTEND, _ABSOLUTE = 29, 30, 31
_ABSOLUTE_BITS = 59


@dataclass(frozen=True)
class Records:
    """Of every event, in order: where its data begins, and when it was (ns of the tracer's clock)."""

    at: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    lost: int
    """Events that the pages say are missing between them."""


def read_pages(data: NDArray[np.uint8], page_bytes: int = 4096) -> Records:
    """All events of a CPU's pages. Raises TraceError where the bytes are no such pages."""
    if data.size % page_bytes:
        raise TraceError(f"the kernel's pages end after {data.size} bytes, within a page of {page_bytes}")
    count = data.size // page_bytes
    if not count:  # nothing ran on this CPU
        return Records(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    words = np.ascontiguousarray(data).view("<u8").reshape(count, -1)
    state = words[:, 1].astype(np.int64)
    begin = np.arange(count, dtype=np.int64) * page_bytes + _HEADER_BYTES
    end = begin + (state & _USED)
    if (end > (np.arange(count) + 1) * page_bytes).any():
        raise TraceError("a page of the kernel's buffer says that it holds more than fits")
    cells = np.ascontiguousarray(data).view("<u4")
    now = words[:, 0].astype(np.int64)
    position = begin.copy()
    found: list[tuple[NDArray[np.int64], ...]] = []
    active = np.flatnonzero(position < end)
    while active.size:
        here = position[active]
        head = cells[here >> 2].astype(np.int64)
        kind, delta = head & 31, head >> 5
        following = cells[np.minimum((here >> 2) + 1, cells.size - 1)].astype(np.int64)
        size = np.where(kind == 0, 4 + following, np.where(kind <= 28, 4 + 4 * kind, 8))
        size = np.where(kind == _PADDING, np.where(delta > 0, 4 + following, end[active] - here), size)
        absolute = (now[active] >> _ABSOLUTE_BITS << _ABSOLUTE_BITS) | (following << 27) + delta
        step = np.where(kind == _EXTEND, delta + (following << 27), np.where(kind == _PADDING, 0, delta))
        now[active] = np.where(kind == _ABSOLUTE, absolute, now[active] + step)
        if (size < 4).any() or (here + size > end[active] + 4).any():
            raise TraceError("an event in the kernel's buffer does not fit its page")
        event = kind <= 28
        data_at = here + np.where(kind == 0, 8, 4)
        found.append((active[event], data_at[event], now[active][event]))
        position[active] = here + size
        active = active[position[active] < end[active]]
    page, at, time = (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else ([], [], [])
    order = np.argsort(np.asarray(page, dtype=np.int64), kind="stable")
    stored = np.flatnonzero((state & _LOST_STORED) != 0)
    lost = int(cells_at(data, end[stored]).sum()) if stored.size else 0
    lost += int(((state & _LOST) != 0).sum()) if not stored.size else 0
    return Records(np.asarray(at, np.int64)[order], np.asarray(time, np.int64)[order], lost)


def cells_at(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The 8-byte integers that begin at these places; 0 beyond the end."""
    inside = np.minimum(at[:, None] + np.arange(8), data.size - 1)
    values = np.ascontiguousarray(data[inside]).view("<u8").ravel().astype(np.int64)
    return np.where(at + 8 <= data.size, values, 0)
