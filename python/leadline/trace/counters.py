"""Amounts over the time of a window: what tensors hold on each device, from their allocations and releases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.profile import Profile
from leadline.schema import EventKind


def counters(profile: Profile) -> dict[str, NDArray[Any]]:
    """Columns time_ns, process, device (-1: CPU), name and value, ordered by time. `tensor bytes` and `tensors` count
    from the beginning of the window: what was alive before is not known, so they may fall below 0."""
    events = profile.events
    rows = np.flatnonzero((events["kind"] == EventKind.ALLOCATE) & (events["bytes"] != 0))
    process = np.array([thread.process for thread in profile.threads] + [-1], dtype=np.int64)[events["thread"][rows]]
    device = events["device"][rows].astype(np.int64)
    size = events["bytes"][rows].astype(np.int64)
    times, values, names, owners, devices = [], [], [], [], []
    for owner, place in sorted(set(zip(process.tolist(), device.tolist(), strict=True))):
        mine = (process == owner) & (device == place)
        for name, value in (("tensor bytes", np.cumsum(size[mine])), ("tensors", np.cumsum(np.sign(size[mine])))):
            times.append(events["start_ns"][rows[mine]].astype(np.int64))
            values.append(value)
            names.append(np.full(value.size, name, dtype=object))
            owners.append(np.full(value.size, owner))
            devices.append(np.full(value.size, place))
    if not times:
        empty = np.empty(0, dtype=np.int64)
        return {"time_ns": empty, "process": empty, "device": empty, "name": empty.astype(object), "value": empty}
    order = np.argsort(np.concatenate(times), kind="stable")
    columns = {"time_ns": times, "process": owners, "device": devices, "name": names, "value": values}
    return {name: np.concatenate(parts)[order] for name, parts in columns.items()}
