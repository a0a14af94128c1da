"""When the device had done what each step launched. Pure, over columns of events of one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind as Kind

Numbers = NDArray[np.int64]

DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.COLLECTIVE)
CALL_KINDS = (Kind.API, Kind.SYNCHRONIZE, Kind.STREAM_WAIT, Kind.EVENT_RECORD, Kind.GRAPH_LAUNCH)


def issued_ns(events: Mapping[str, NDArray[Any]]) -> Numbers:
    """Of every event when the CPU asked for it: device work at its launch where that is recorded, all else where it
    began. One process's events: numbers of launches are of one process."""
    kind = events["kind"]
    at: Numbers = np.asarray(events["start_ns"]).astype(np.int64)
    correlation = np.asarray(events["correlation"]).astype(np.int64)
    launches = np.flatnonzero(np.isin(kind, CALL_KINDS) & (correlation != 0))
    launches = launches[np.argsort(correlation[launches], kind="stable")]
    work = np.flatnonzero(device_rows(events))
    if launches.size and work.size:
        found = np.searchsorted(correlation[launches], correlation[work])
        found = launches[np.minimum(found, launches.size - 1)]
        known = correlation[found] == correlation[work]
        at[work[known]] = at[found[known]]
    return at


def device_rows(events: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Work that ran on a device."""
    found: NDArray[np.bool_] = np.isin(events["kind"], DEVICE_KINDS) & (np.asarray(events["device"]) >= 0)
    return found


def done_ns(events: Mapping[str, NDArray[Any]], start_ns: Sequence[int], end_ns: Sequence[int]) -> Numbers:
    """For steps [start, end) in time order: when all of the step and of the device work that it launched had ended."""
    begins, ends = np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64)
    done = ends.copy()
    work = np.flatnonzero(device_rows(events))
    if not work.size or not begins.size:
        return done
    issued = issued_ns(events)[work]
    over = np.asarray(events["start_ns"])[work].astype(np.int64) + np.asarray(events["duration_ns"])[work]
    place = np.searchsorted(begins, issued, side="right") - 1
    inside = (place >= 0) & (issued < ends[np.maximum(place, 0)])
    np.maximum.at(done, place[inside], over[inside])
    return done
