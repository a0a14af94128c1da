"""When the device had done what each step launched. Pure, over columns of events of one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind as Kind

Numbers = NDArray[np.int64]

LONG_AGO = -(1 << 62)
_ALONE = 2  # usual steps; work of the last step that takes longer by itself runs beside them

DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.SET, Kind.COLLECTIVE)
CALL_KINDS = (Kind.API, Kind.SYNCHRONIZE, Kind.STREAM_WAIT, Kind.EVENT_RECORD, Kind.GRAPH_LAUNCH)


def issued_ns(events: Mapping[str, NDArray[Any]]) -> Numbers:
    """Of every event when the CPU asked for it: device work at its launch where that is recorded, all else where it
    began. One process's events: numbers of launches are of one process."""
    return _issued(events)[0]


def _issued(events: Mapping[str, NDArray[Any]]) -> tuple[Numbers, NDArray[np.bool_]]:
    """See `issued_ns`, and whose launch is recorded."""
    kind = events["kind"]
    at: Numbers = np.asarray(events["start_ns"]).astype(np.int64)
    told = np.zeros(at.size, np.bool_)
    correlation = np.asarray(events["correlation"]).astype(np.int64)
    launches = np.flatnonzero(np.isin(kind, CALL_KINDS) & (correlation != 0))
    launches = launches[np.argsort(correlation[launches], kind="stable")]
    work = np.flatnonzero(device_rows(events))
    if launches.size and work.size:
        found = np.searchsorted(correlation[launches], correlation[work])
        found = launches[np.minimum(found, launches.size - 1)]
        known = correlation[found] == correlation[work]
        at[work[known]] = at[found[known]]
        told[work[known]] = True
    return at, told


def behind_ns(events: Mapping[str, NDArray[Any]], start_ns: int, first_done_ns: int) -> int:
    """When the device had done what was launched before `start_ns`, where the first step begins; long ago where there
    is no such work.

    A trace that begins while the device is behind holds work whose launch it does not hold: what runs on a stream in
    front of the first work with a launch. What goes on behind `first_done_ns`, when the first step was done, runs
    beside the steps.
    """
    work = np.flatnonzero(device_rows(events))
    issued, told = (column[work] for column in _issued(events))
    begins = np.asarray(events["start_ns"])[work].astype(np.int64)
    over = begins + np.asarray(events["duration_ns"])[work]
    stream = np.asarray(events["device"])[work].astype(np.int64) << 32 | (
        np.asarray(events["stream"])[work].astype(np.int64) & 0xFFFFFFFF
    )
    later = told & (issued >= start_ns)
    before = told & (issued < start_ns)
    for one in np.unique(stream[later]).tolist():
        first = int(begins[later & (stream == one)].min())
        before |= ~told & (stream == one) & (begins < first)
    return int(over[before & (over <= first_done_ns)].max(initial=LONG_AGO))


def device_rows(events: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Work that ran on a device."""
    found: NDArray[np.bool_] = np.isin(events["kind"], DEVICE_KINDS) & (np.asarray(events["device"]) >= 0)
    return found


def done_ns(events: Mapping[str, NDArray[Any]], start_ns: Sequence[int], end_ns: Sequence[int]) -> Numbers:
    """For steps [start, end) in time order: when all of the step and of the device work that it launched had ended.

    What goes on behind the end of the next step, as a kernel that waits for messages or a copy of a checkpoint does,
    runs beside the steps and ends none: a device that is behind does their work in their order. No step follows the
    last one: there, what alone takes longer than two usual steps runs beside them."""
    begins, ends = np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64)
    done = ends.copy()
    work = np.flatnonzero(device_rows(events))
    if not work.size or not begins.size:
        return done
    issued = issued_ns(events)[work]
    took = np.asarray(events["duration_ns"])[work].astype(np.int64)
    over = np.asarray(events["start_ns"])[work].astype(np.int64) + took
    place = np.searchsorted(begins, issued, side="right") - 1
    inside = (place >= 0) & (issued < ends[np.maximum(place, 0)])
    order = np.flatnonzero(inside)
    order = order[np.lexsort((over[order], place[order]))]
    place, over, took = place[order], over[order], took[order]
    first = np.searchsorted(place, np.arange(done.size + 1))
    mine = [over[first[step] : first[step + 1]] for step in range(done.size)]
    _finish(done, mine)
    usual = float(np.median(np.diff(done[:-1]))) if done.size > 2 else 0.0
    alone = took[first[-2] :] > _ALONE * usual
    beside = int(np.argmin(alone[::-1])) if not alone.all() else alone.size
    if usual > 0 and beside:
        done = ends.copy()
        _finish(done, [*mine[:-1], mine[-1][: alone.size - beside]])
    return done


def _finish(done: Numbers, over: Sequence[Numbers]) -> None:
    """Moves each step's end to the last end of its work that is not behind the end of the next."""
    until = np.iinfo(np.int64).max
    for step in range(done.size - 1, -1, -1):
        held = int(np.searchsorted(over[step], until, side="right"))
        if held:
            done[step] = max(int(done[step]), int(over[step][held - 1]))
        until = int(done[step])
