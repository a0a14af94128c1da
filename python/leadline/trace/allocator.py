"""What an allocator of memory held over a window: in all, in blocks, by pool or size, asked for beside given, and how
scattered what is free lies.

Recorded with the process that it belongs to (`meta.processes[].dataflow.allocators`), on the clock of its events, as
columns of equal length. A long history is thinned: of every stretch the moment of most bytes in use and the last one
stay, so that peaks and ends are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

Numbers = NDArray[np.int64]

MOST_POINTS = 20_000
IN_USE = "bytes in use"
RESERVED = "bytes reserved"
"""What the allocator holds of the device, in use or not."""
FREE = "bytes free"
REQUESTED = "bytes requested"
"""Of what is in use, what the program asked for."""
WASTED = "bytes wasted"
"""Of what is in use, what blocks are larger than was asked for."""
BLOCKS = "blocks in use"
SEGMENTS = "segments"
LARGEST_FREE = "bytes of the largest free block"
FRAGMENTATION = "fragmentation, per mille"
"""1 - largest free block / all that is free: 0 where all of it could be given away at once."""
_MOST_SERIES = 256


@dataclass(frozen=True)
class History:
    """One allocator. `device`: index of the device, -1 for host memory; `values` by what they count."""

    device: int
    name: str
    time_ns: Numbers
    values: Mapping[str, Numbers]

    def thinned(self, most: int = MOST_POINTS) -> History:
        """At most about `most` points."""
        size = self.time_ns.size
        if size <= most:
            return self
        stretch = -(-2 * size // most)
        begins = np.arange(0, size, stretch)
        main = self.values.get(IN_USE, next(iter(self.values.values())))
        last = np.minimum(begins + stretch, size) - 1
        highest = np.array([begin + int(np.argmax(main[begin : begin + stretch])) for begin in begins.tolist()])
        kept = np.unique(np.concatenate(([0], highest, last)))
        return History(
            self.device, self.name, self.time_ns[kept], {name: one[kept] for name, one in self.values.items()}
        )

    def record(self) -> dict[str, Any]:
        """As a part of a process's record."""
        short = self.thinned()
        values = {name: one.tolist() for name, one in short.values.items()}
        return {"device": self.device, "name": self.name, "time_ns": short.time_ns.tolist(), "values": values}


def histories(record: Mapping[str, Any]) -> list[History]:
    """Those of a process's record; what does not fit together is left out."""
    told = record.get("dataflow")
    listed = told.get("allocators") if isinstance(told, Mapping) else None
    found = []
    for one in listed if isinstance(listed, list) else ():
        try:
            times = np.array(one["time_ns"], dtype=np.int64)
            values = {
                str(name): np.array(column, dtype=np.int64)
                for name, column in list(one["values"].items())[:_MOST_SERIES]
            }
            history = History(int(one["device"]), str(one["name"]), times, values)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
            continue
        if times.ndim == 1 and all(column.shape == times.shape for column in values.values()):
            found.append(history)
    return found


def bins(size: Numbers, change: Numbers) -> dict[str, Numbers]:
    """Blocks in use and their bytes by size, as in TensorFlow's BFC allocator: bin k holds blocks from 256 << k bytes
    on. `size`: of the block of each allocation and free; `change`: 1 and -1. From the beginning of the window."""
    number = np.clip(np.log2(np.maximum(size, 256) / 256).astype(np.int64), 0, 20)
    found: dict[str, Numbers] = {}
    for one in np.unique(number).tolist():
        mine = np.where(number == one, change, 0)
        found[f"bin of {256 << one} bytes: blocks in use"] = np.cumsum(mine)
        found[f"bin of {256 << one} bytes: bytes in use"] = np.cumsum(mine * size)
    return found
