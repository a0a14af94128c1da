"""What TensorFlow's allocators said of themselves with every allocation and free of a profile (`MemoryAllocation`,
`MemoryDeallocation` of its BFC allocator, xla/tsl/framework/bfc_allocator.cc)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.trace.allocator import BLOCKS, FRAGMENTATION, IN_USE, RESERVED, WASTED, History, bins
from leadline.trace.xspace_stats import NOT_SAID, Rows, Stats
from leadline.xla.events import Event, Named

NUMBERS = (
    *("allocation_bytes", "requested_bytes", "addr"),
    *("bytes_allocated", "bytes_reserved", "bytes_available", "fragmentation*1000"),
)
TEXT = "allocator_name"
_TOLD = {
    "bytes_allocated": IN_USE,
    "bytes_reserved": RESERVED,
    "bytes_available": "bytes available",
    "fragmentation*1000": FRAGMENTATION,
}
_DEVICE = re.compile(r"GPU_(\d{1,4})_bfc")
_NOTHING = -1


def allocators(
    stats: Stats,
    rows: Rows,
    start_ns: Rows,
    meaning: NDArray[np.int32],
    meanings: Sequence[Named],
    strings: Sequence[str],
) -> list[History]:
    """One history for each allocator. `rows`: of the trace's events in the reader's order, with when each was and what
    it means. Sizes count from the beginning of the profile, the others are the allocator's own."""
    changes = {Event.ALLOCATE: 1, Event.FREE: -1}
    of_meaning = np.array([*(changes.get(one.event, 0) for one in meanings), 0], np.int64)  # the last: of no meaning
    changed = of_meaning[meaning]
    there = np.flatnonzero(changed)
    rows, start_ns, changed = rows[there], start_ns[there], changed[there]
    names = stats.text(TEXT, rows)
    found = []
    for text in np.unique(names).tolist():
        mine = np.flatnonzero(names == text)
        told = {
            word: values
            for name, word in _TOLD.items()
            if (values := stats.number(name, NOT_SAID, rows[mine])).size and (values != NOT_SAID).all()
        }
        if IN_USE not in told:
            continue
        size = stats.number("allocation_bytes", _NOTHING, rows[mine])
        asked = stats.number("requested_bytes", _NOTHING, rows[mine])
        change = changed[mine]
        if (size >= 0).all():
            told[BLOCKS] = np.cumsum(change)
            told |= bins(size, change)
            if (asked >= 0).all():
                told[WASTED] = np.cumsum(change * np.maximum(size - asked, 0))
        name = strings[text] or "allocator"
        device = _DEVICE.search(name)
        found.append(History(int(device[1]) if device else -1, name, start_ns[mine], told))
    return found
