"""Memory of TensorFlow's allocators, from the events that they write for every allocation and free."""

from __future__ import annotations

import numpy as np

from leadline.profiles.builder import ProfileBuilder
from leadline.schema import MetricKind
from leadline.trace.importers.spans import Rows
from leadline.trace.tables import Kind
from leadline.trace.xspace import Space
from leadline.trace.xspace_stats import Stat
from leadline.xla.events import Event


def book_memory(builder: ProfileBuilder, space: Space, node: Rows) -> None:
    """Bytes allocated and freed at each node, and what was alive when the allocator held most. `node`: of every event,
    of an allocation that of the span around it."""
    rows = np.flatnonzero(space.trace.events["kind"] == Kind.ALLOCATE)
    rows = rows[node[rows] >= 0]
    if not rows.size:
        return
    meanings = [one.event for one in space.meanings]
    taken = np.array([meanings[meaning] == Event.ALLOCATE for meaning in space.meaning[rows].tolist()], np.bool_)
    size = np.maximum(space.trace.events["bytes"][rows], 0).tolist()
    peak = int(np.argmax(_of(space.held, rows)))
    alive: dict[int, tuple[int, int]] = {}  # by address: node, bytes
    at_peak: list[tuple[int, int]] = []
    columns = zip(taken.tolist(), size, node[rows].tolist(), _of(space.address, rows).tolist(), strict=True)
    for place, (is_taken, held, where, address) in enumerate(columns):
        if is_taken:
            alive[address] = (where, held)
            builder.add(where, MetricKind.ALLOC_BYTES, held)
        else:
            alive.pop(address, None)
            builder.add(where, MetricKind.FREE_BYTES, held)
        if place == peak:
            at_peak = list(alive.values())
    for where, held in at_peak:
        builder.add(where, MetricKind.PEAK_LIVE_BYTES, held)


def _of(told: Stat, rows: Rows) -> Rows:
    """What each of these rows tells; -1 where it does not."""
    if not told.rows.size:
        return np.full(rows.size, -1, np.int64)
    at = np.searchsorted(told.rows, rows).clip(max=told.rows.size - 1)
    found: Rows = np.where(told.rows[at] == rows, told.values[at], -1)
    return found
