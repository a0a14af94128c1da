"""What torch's allocator holds of a device by pool, from the segments of a snapshot, and over its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.allocator import FRAGMENTATION, FREE, IN_USE, LARGEST_FREE, REQUESTED, RESERVED, SEGMENTS, History
from leadline.trace.snapshot_file import LIVE, Actions, Ints

NAME = "torch's allocator"


def pools_of(segments: Sequence[Mapping[str, Any]], device: int, time_ns: int) -> History:
    """At one moment, in all and by pool: `large pool: bytes reserved`."""
    mine = [one for one in segments if int(one.get("device", 0)) == device]
    streams = {int(one.get("stream", 0)) for one in mine}
    found: dict[str, dict[str, int]] = {}
    for segment in mine:
        free = [int(one["size"]) for one in segment["blocks"] if one["state"] not in LIVE]
        used = sum(int(one["size"]) for one in segment["blocks"] if one["state"] in LIVE)
        added = {RESERVED: int(segment["total_size"]), IN_USE: used, FREE: sum(free), SEGMENTS: 1}
        for pool in ("", _pool(segment, len(streams) > 1) + ": "):
            sums = found.setdefault(pool, dict.fromkeys((*added, LARGEST_FREE), 0))
            for name, value in added.items():
                sums[name] += value
            sums[LARGEST_FREE] = max(sums[LARGEST_FREE], *free, 0)
    values: dict[str, Ints] = {}
    for pool, sums in found.items():
        scattered = round(1000 * (1 - sums[LARGEST_FREE] / sums[FREE])) if sums[FREE] else 0
        values |= {pool + name: np.array([one], np.int64) for name, one in {**sums, FRAGMENTATION: scattered}.items()}
    return History(device, NAME, np.array([time_ns], np.int64), values)


def _pool(segment: Mapping[str, Any], several_streams: bool) -> str:
    """`large pool`; `large pool of graph pool 1`, `large pool of stream 7` where it belongs to one of several."""
    kind = str(segment.get("segment_type") or "only")
    owner = tuple(segment.get("segment_pool_id") or (0, 0))
    text = f"{kind} pool"
    if any(owner):
        text += f" of graph pool {next(int(one) for one in owner if one)}"
    if several_streams:
        text += f" of stream {int(segment.get('stream', 0))}"
    return text


def history_of(at_end: History, time_ns: Ints, requested: Ints, mapped: Ints) -> History:
    """`requested`: what was alive after each moment; `mapped`: by how much what is held of the device changed at it."""
    reserved = int(at_end.values[RESERVED][0]) - mapped.sum() + np.cumsum(mapped) if RESERVED in at_end.values else 0
    return History(at_end.device, NAME, time_ns, {RESERVED: reserved + np.zeros_like(time_ns), REQUESTED: requested})


def mapped_at(actions: Actions, kept: NDArray[np.bool_]) -> Ints:
    """By how much what is held of the device changed, at each of the actions that are kept: with the first one after
    it, with the last where there is none."""
    taken, given = actions.are("segment_alloc", "segment_map"), actions.are("segment_free", "segment_unmap")
    change = np.where(taken, actions.size, -actions.size)[taken | given]
    moments = np.flatnonzero(kept)
    at = np.searchsorted(moments, np.flatnonzero(taken | given))
    made = np.zeros(moments.size, np.int64)
    np.add.at(made, np.minimum(at, moments.size - 1), change)
    return made
