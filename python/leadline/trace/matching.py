"""Launches and their work without correlation ids: Zins and Dagenais, algorithm 2, by order.

A queue works in order, so the k-th launch on a stream is its k-th work: per device and stream, and only where both are
equally many and no work would begin before its launch. Otherwise nothing is matched, and how much that is is said. (As
printed, the algorithm takes the last launch before a kernel begins, which is wrong as soon as the CPU runs ahead.)
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.trace.tables import DEVICE_KINDS, Kind, Trace

_LAUNCHES = re.compile(r"launch|memcpy|memset|enqueue", re.IGNORECASE)
_CALLS = (Kind.API, Kind.GRAPH_LAUNCH)


def with_matches(trace: Trace) -> Trace:
    """The trace with correlation ids where it has none for any work of a device; itself where it has some."""
    events = trace.events
    work = np.flatnonzero(np.isin(events["kind"], [int(kind) for kind in DEVICE_KINDS]) & (events["thread"] < 0))
    if not work.size or (events["correlation"][work] != 0).any():
        return trace
    named = np.array([_LAUNCHES.search(name) is not None for name in trace.strings], dtype=np.bool_)
    calls = np.flatnonzero(np.isin(events["kind"], _CALLS) & (events["thread"] >= 0) & named[events["name"]])
    launch, target = matched(
        events["start_ns"][calls], events["device"][calls], events["stream"][calls],
        events["start_ns"][work], events["device"][work], events["stream"][work],
    )  # fmt: skip
    correlation = events["correlation"].copy()
    first = int(correlation.max(initial=0)) + 1
    correlation[calls[launch]] = correlation[work[target]] = np.arange(first, first + launch.size)
    said = (
        f"the trace has no correlation ids: {launch.size:,} of {work.size:,} pieces of device work were matched with "
        "their launches by order, stream by stream; where launches and work are not equally many, nothing is"
    )
    return replace(trace, events={**events, "correlation": correlation}, warnings=(*trace.warnings, said))


def matched(
    launch_ns: NDArray[np.int64],
    launch_device: NDArray[np.int64],
    launch_stream: NDArray[np.int64],
    work_ns: NDArray[np.int64],
    work_device: NDArray[np.int64],
    work_stream: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of launches and of their work. Where no launch says on which stream it is, the work of one stream is needed;
    a device that no launch names counts as the one that works there."""
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    queues = sorted(set(zip(work_device.tolist(), work_stream.tolist(), strict=True)))
    for device, stream in queues:
        theirs = np.flatnonzero((work_device == device) & (work_stream == stream))
        told = (launch_stream == stream) & ((launch_device == device) | (launch_device < 0))
        mine = np.flatnonzero(told)
        if not mine.size and len(queues) == 1 and (launch_stream < 0).all():
            mine = np.arange(launch_ns.size)
        if mine.size != theirs.size:
            continue
        mine = mine[np.argsort(launch_ns[mine], kind="stable")]
        theirs = theirs[np.argsort(work_ns[theirs], kind="stable")]
        if (work_ns[theirs] >= launch_ns[mine]).all():
            found.append((mine, theirs))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    launches, works = zip(*found, strict=True)
    return np.concatenate(launches), np.concatenate(works)
