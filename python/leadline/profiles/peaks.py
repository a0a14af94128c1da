"""Metrics of a moment: bytes alive at the peak of one process on one device. Every process and device peaks at a moment
of its own, so sums stay below a process and on a device; where several meet, the largest is what can be said truly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.measures import Measures, exclusive_measures, no_measures
from leadline.profiles.rollup import Shape, inclusive_measures
from leadline.profiles.tables import Columns
from leadline.schema import FrameKind, MetricKind

OF_A_MOMENT = frozenset({MetricKind.PEAK_LIVE_BYTES})
_COLUMNS = ("count", "sum", "min", "max", "sum_squares")


def apart(
    metrics: Columns, shape: Shape, kinds: NDArray[np.uint8], metric: MetricKind, stream: int | None = None
) -> list[Measures]:
    """The measures of devices that may not be added up, each by itself: in the first what every process measured on its
    first device (the CPU is one), in the second on its second. As many as a process has devices, not as there are."""
    here = np.flatnonzero((metrics["metric"] == int(metric)) & (metrics["count"] != 0))
    if not len(here):
        return []
    owner = _owners(shape, kinds)[metrics["node"][here]]
    pairs, which = np.unique(np.stack((owner, metrics["device"][here].astype(np.int64))), axis=1, return_inverse=True)
    first = np.searchsorted(pairs[0], pairs[0], side="left")
    number = (np.arange(pairs.shape[1]) - first)[which.reshape(-1)]
    found = []
    for one in range(int(number.max()) + 1):
        rows = here[number == one]
        chosen = {name: values[rows] for name, values in metrics.items()}
        found.append(exclusive_measures(chosen, shape.size, metric, None, stream))
    return found


def _owners(shape: Shape, kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The process of every node, the root where there is none."""
    owner = np.where(kinds == int(FrameKind.PROCESS), np.arange(shape.size), np.maximum(shape.parent, 0))
    while not np.array_equal(further := owner[owner], owner):
        owner = further
    found: NDArray[np.int64] = owner.astype(np.int64)
    return found


def exclusive_at_peaks(exclusive: Sequence[Measures], nodes: int) -> Measures:
    """Of every node the device that has most."""
    return _largest(exclusive, nodes)


def at_one_moment(shape: Shape, kinds: NDArray[np.uint8], exclusive: Sequence[Measures]) -> NDArray[np.int64]:
    """What each node held of the largest peak there was, that of one process on one device: what a picture whose parts
    are as large as their sum may show. `exclusive`: see `apart`."""
    best = np.zeros(shape.size, np.int64)
    owner = _owners(shape, kinds)
    for one in exclusive:
        held = np.maximum(one.sum, 0)
        largest = int(np.argmax(np.bincount(owner, weights=held, minlength=1)))
        if held[owner == largest].sum() > best.sum():
            best = np.where(owner == largest, held, 0)
    return best


def inclusive_at_peaks(shape: Shape, kinds: NDArray[np.uint8], exclusive: Sequence[Measures]) -> Measures:
    """Rolled up within a process, for each of `exclusive` (see `apart`) by itself; of every node the device that has
    most, and of what stands above processes the process that has most."""
    return _largest([_within_processes(shape, kinds, one) for one in exclusive], shape.size)


def _within_processes(shape: Shape, kinds: NDArray[np.uint8], exclusive: Measures) -> Measures:
    inclusive = inclusive_measures(shape, exclusive)
    processes = np.flatnonzero(kinds == int(FrameKind.PROCESS))
    largest_last = processes[np.argsort(inclusive.sum[processes], kind="stable")]
    columns = [getattr(inclusive, name) for name in _COLUMNS]
    for process in largest_last.tolist():
        above = int(shape.parent[process])
        while above >= 0:
            for column in columns:
                column[above] = column[process]
            above = int(shape.parent[above])
    return inclusive


def _largest(measures: Sequence[Measures], rows: int) -> Measures:
    if not measures:
        return no_measures(rows)
    best = measures[0].copy()
    for one in measures[1:]:
        better = (one.count > 0) & ((best.count == 0) | (one.sum > best.sum))
        for name in _COLUMNS:
            getattr(best, name)[better] = getattr(one, name)[better]
    return best
