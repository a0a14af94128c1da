"""Event tables: what every reader of traces delivers and everything above reads.

One row per event of a window, ordered by start. The columns are those of the schema's `events` table as far as a trace
of others can fill them; times are nanoseconds on one clock per trace, counted from `origin_ns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.schema import EventKind


class TraceError(ValueError):
    """A trace cannot be read or used; the message says why and what to do."""


Kind = EventKind
"""Of an event; a short name, since every rule says it."""

DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.COLLECTIVE)
CALL_KINDS = (Kind.API, Kind.SYNCHRONIZE, Kind.STREAM_WAIT, Kind.EVENT_RECORD, Kind.GRAPH_LAUNCH)

EVENT_COLUMNS: Mapping[str, str] = {
    "start_ns": "i8",
    "duration_ns": "i8",
    "kind": "u1",
    "name": "i4",  # row of strings
    "thread": "i4",  # row of threads, -1 for device work
    "device": "i4",  # -1 for the CPU
    "stream": "i4",  # -1 for the CPU
    "correlation": "i8",  # 0 for none
    "sequence": "i8",  # -1 for none
    "forward_thread": "i8",  # the framework's own number of the forward thread, -1 for none
    "bytes": "i8",
    "awaits": "i8",  # synchronisation metadata: stream waited for, -1 for all or none
    "awaits_correlation": "i8",  # correlation of the event record waited for, 0 for none
    "detail": "i4",  # row of details, -1 for none
    "node": "i4",  # call path: row of the profile's nodes, -1 in traces of others
    "step": "i4",  # training step number, -1 before the first and in traces of others
}


def distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Of rows that are equal in all columns one each, as row numbers in their order, and for every row the place of its
    like there."""
    from leadline import _events

    first, place = _events.distinct([np.ascontiguousarray(column, np.int64) for column in columns])
    return first, place


@dataclass(frozen=True)
class Thread:
    """A CPU thread of a trace. `process`: row of the profile's processes, in traces of others their name for it."""

    rank: int
    process: int | str
    tid: int
    name: str = ""


@dataclass(frozen=True)
class Device:
    """An accelerator; 0 and "" where the trace does not say."""

    index: int = 0
    name: str = ""
    memory_bytes: int = 0
    compute_capability: str = ""
    multiprocessors: int = 0
    lanes: int = 0
    """Threads that it runs in step."""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Link:
    """From a device to another one of the program: `kind` in its maker's word (`xGMI`, `PCIe`), bytes a second."""

    device: int
    kind: str
    bytes_s: float


@dataclass(frozen=True)
class Flow:
    """Forward operator (thread row, start) to its backward operator (thread row, start)."""

    forward_thread: int
    forward_ns: int
    backward_thread: int
    backward_ns: int


@dataclass(frozen=True)
class Trace:
    """Events of one rank.

    `origin_ns`: what the trace's own clock showed at time 0 of the columns. `complete` is False when the file ended
    early. `warnings`: what its reader says of it, and `unread` of those that tell of events left out how many these
    are. `clipped_ns` is the time range that was asked of the reader, None for everything.
    """

    events: Mapping[str, NDArray[Any]]
    strings: Sequence[str]
    details: Sequence[Mapping[str, Any]]
    threads: Sequence[Thread]
    devices: Sequence[Device] = ()
    flows: Sequence[Flow] = ()
    rank: int = 0
    world_size: int = 1
    source: str = ""
    origin_ns: int = 0
    complete: bool = True
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.events["start_ns"].size)

    @cached_property
    def end_ns(self) -> NDArray[np.int64]:
        """End of every event."""
        ends: NDArray[np.int64] = self.events["start_ns"] + self.events["duration_ns"]
        return ends

    def of_kind(self, *kinds: Kind) -> NDArray[np.int64]:
        """Rows of the events of these kinds, in time order."""
        found: NDArray[np.int64] = np.flatnonzero(np.isin(self.events["kind"], [int(kind) for kind in kinds]))
        return found

    def name(self, row: int) -> str:
        """Name of an event."""
        return self.strings[int(self.events["name"][row])]
