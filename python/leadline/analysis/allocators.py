"""What allocators of device memory held at the end of what was recorded: reserved beside in use, by pool."""

from __future__ import annotations

from collections.abc import Mapping

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.profiles.lineage import record_of_rows
from leadline.trace.allocator import IN_USE, LARGEST_FREE, RESERVED, SEGMENTS, histories

_BETWEEN = ": "


@dataclass(frozen=True)
class Pool:
    """Bytes. `name`: empty for all of an allocator. `largest_free`: the largest block that could be given away, None
    where nobody looked; `segments`: pieces of the device's memory, None where they were not counted."""

    name: str
    reserved: int
    in_use: int
    largest_free: int | None
    segments: int | None

    @property
    def free(self) -> int:
        """Held of the device and not in use."""
        return max(self.reserved - self.in_use, 0)


@dataclass(frozen=True)
class Allocator:
    """One process's allocator of one device. `device`: a row of the table, -1 where none is known; `pools`: all of it
    first."""

    process: int
    device: int
    name: str
    pools: tuple[Pool, ...]


def allocators(profile: Profile) -> tuple[Allocator, ...]:
    """In the order of processes and devices; those that say what they reserve."""
    rows = {(device.process, device.index): device.row for device in profile.devices}
    last: dict[tuple[int, int, str], dict[str, int]] = {}
    for process, record in enumerate(record_of_rows(profile)):
        for history in histories(record):
            if history.time_ns.size:
                latest = {name: int(values[-1]) for name, values in history.values.items()}
                last.setdefault((process, history.device, history.name), {}).update(latest)
    made = []
    for (process, device, name), values in last.items():
        names = ["", *sorted({key.partition(_BETWEEN)[0] for key in values if _BETWEEN in key})]
        pools = [_pool(one, values) for one in names]
        found = tuple(one for one in pools if one is not None)
        if found:
            made.append(Allocator(process, rows.get((process, device), -1), name, found))
    return tuple(made)


def _pool(name: str, values: Mapping[str, int]) -> Pool | None:
    prefix = f"{name}{_BETWEEN}" if name else ""
    reserved, in_use = values.get(prefix + RESERVED), values.get(prefix + IN_USE)
    if reserved is None or in_use is None or reserved <= 0:
        return None
    return Pool(name, reserved, in_use, values.get(prefix + LARGEST_FREE), values.get(prefix + SEGMENTS))
