"""Which call gave which work to a device, and when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.trace.tables import Kind
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import IntArray

LONG_AGO = np.iinfo(np.int64).min // 2  # differences to it still fit


def in_front(start: IntArray, device: IntArray, number: IntArray, in_window: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What runs on its stream before the first work that the window launched there."""
    front = np.zeros(start.size, np.bool_)
    stream = device.astype(np.int64) << 32 | (number.astype(np.int64) & 0xFFFFFFFF)
    for one in np.unique(stream[in_window]).tolist():
        front |= (stream == one) & (start < int(start[in_window & (stream == one)].min()))
    return front


def given_ns(draft: Draft, work: IntArray, launch_ns: IntArray, known: NDArray[np.bool_]) -> IntArray:
    """When the work of a stream was given to it; for work without a recorded launch the earliest moment that the
    trace allows, as most of it was given before the window.

    A synchronisation that was over before such work began did not wait for it, so it was given after that one's begin;
    and it was given before what stands behind it on the stream.
    """
    if known.all():
        return launch_ns
    events = draft.trace.events
    waits = draft.trace.of_kind(Kind.SYNCHRONIZE)
    waits = waits[np.argsort(draft.trace.end_ns[waits], kind="stable")]
    over = np.searchsorted(draft.trace.end_ns[waits], draft["start_ns"][work], side="right")
    passed = np.concatenate(([LONG_AGO], np.maximum.accumulate(events["start_ns"][waits])))[over]
    never = np.iinfo(np.int64).max
    behind = np.minimum.accumulate(np.where(known, launch_ns, never)[::-1])[::-1]
    given: IntArray = np.where(known, launch_ns, np.minimum(np.maximum(launch_ns, passed), behind))
    return given


def launch_rows(draft: Draft, device_rows: IntArray) -> IntArray:
    """Event row of the call that launched each device event, -1 where the trace has none."""
    trace = draft.trace
    events = trace.events
    calls = trace.of_kind(Kind.API, Kind.GRAPH_LAUNCH, Kind.SYNCHRONIZE)
    calls = calls[events["correlation"][calls] > 0]
    ids = events["correlation"][calls]
    first = np.argsort(ids, kind="stable")
    ids, calls = ids[first], calls[first]
    wanted = events["correlation"][device_rows]
    if not calls.size:
        return np.full(device_rows.size, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    found: IntArray = np.where((ids[at] == wanted) & (wanted > 0), calls[at], -1)
    return found
