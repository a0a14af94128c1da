"""Amounts over the time of a window: what tensors hold on each device, from their allocations and releases, and what
allocators say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.lineage import moved_ns, record_of_rows
from leadline.profiles.profile import Profile
from leadline.schema import EventKind
from leadline.trace.allocator import histories

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Series:
    """One amount, in the order of time. `process`, `device`: rows of the profile, -1 for the CPU."""

    process: int
    device: int
    name: str
    time_ns: Numbers
    values: Numbers

    @property
    def in_bytes(self) -> bool:
        """Whether it counts bytes; blocks, tensors or shares otherwise."""
        return "bytes" in self.name.rpartition(": ")[2]


def series(profile: Profile) -> list[Series]:
    """All of the window: `tensor bytes` and `tensors`, which count from its beginning (what was alive before is not
    known, so they may fall below 0), then allocators' own accounts (see `allocator.py`)."""
    return [*_tensors(profile), *_allocators(profile)]


def counters(profile: Profile) -> dict[str, NDArray[Any]]:
    """The series as columns time_ns, process, device, name and value, ordered by time."""
    found = series(profile)
    sizes = [one.time_ns.size for one in found]
    names = np.empty(len(found), dtype=object)
    names[:] = [one.name for one in found]
    whole = np.empty(0, dtype=np.int64)
    columns: dict[str, NDArray[Any]] = {
        "time_ns": np.concatenate([whole, *(one.time_ns for one in found)]),
        "process": np.repeat(np.array([one.process for one in found], np.int64), sizes),
        "device": np.repeat(np.array([one.device for one in found], np.int64), sizes),
        "name": np.repeat(names, sizes),
        "value": np.concatenate([whole, *(one.values for one in found)]),
    }
    order = np.argsort(columns["time_ns"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _tensors(profile: Profile) -> Iterator[Series]:
    events = profile.events
    rows = np.flatnonzero((events["kind"] == EventKind.ALLOCATE) & (events["bytes"] != 0))
    process = np.array([thread.process for thread in profile.threads] + [-1], dtype=np.int64)[events["thread"][rows]]
    device = events["device"][rows].astype(np.int64)
    size = events["bytes"][rows].astype(np.int64)
    for owner, place in sorted(set(zip(process.tolist(), device.tolist(), strict=True))):
        mine = (process == owner) & (device == place)
        at = events["start_ns"][rows[mine]].astype(np.int64)
        yield Series(owner, place, "tensor bytes", at, np.cumsum(size[mine]))
        yield Series(owner, place, "tensors", at, np.cumsum(np.sign(size[mine])))


def _allocators(profile: Profile) -> Iterator[Series]:
    rows = {(device.process, device.index): device.row for device in profile.devices}
    for process, record in enumerate(record_of_rows(profile)):
        for history in histories(record):
            at = history.time_ns + moved_ns(record)
            for name, values in history.values.items():
                yield Series(process, rows.get((process, history.device), -1), f"{history.name}: {name}", at, values)
