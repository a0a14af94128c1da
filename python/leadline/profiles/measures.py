"""Measurements per node: one metric's accumulators as five columns, a row for every node of the tree.

Exclusive values are gathered from the `metrics` table; `rollup.py` makes inclusive ones of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.tables import Array, Columns
from leadline.schema import MetricKind

_NO_MIN = np.iinfo(np.int64).max
_NO_MAX = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Stat:
    """A set of measurements in the metric's unit (nanoseconds for times, bytes for sizes). All zero when `count` is
    0."""

    count: int
    sum: int
    min: int
    max: int
    sum_squares: float

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0

    @property
    def std(self) -> float:
        """Standard deviation of the population: sqrt(E[x^2] - E[x]^2)."""
        if not self.count:
            return 0.0
        variance = self.sum_squares / self.count - self.mean**2
        return math.sqrt(variance) if variance > 0 and math.isfinite(variance) else 0.0


NO_MEASUREMENT = Stat(0, 0, 0, 0, 0.0)


@dataclass(frozen=True)
class Measures:
    """Five columns with a row per node. Where `count` is 0, `min` and `max` hold the identity of their operation."""

    count: NDArray[np.int64]
    sum: NDArray[np.int64]
    min: NDArray[np.int64]
    max: NDArray[np.int64]
    sum_squares: NDArray[np.float64]

    def stat(self, row: int) -> Stat:
        count = int(self.count[row])
        if not count:
            return NO_MEASUREMENT
        return Stat(count, int(self.sum[row]), int(self.min[row]), int(self.max[row]), float(self.sum_squares[row]))

    def total(self, rows: Array | None = None) -> Stat:
        """The measurements of several rows (all when None) as one set."""
        pick = slice(None) if rows is None else rows
        count = int(self.count[pick].sum())
        if not count:
            return NO_MEASUREMENT
        return Stat(
            count,
            int(self.sum[pick].sum()),
            int(self.min[pick].min()),
            int(self.max[pick].max()),
            float(self.sum_squares[pick].sum()),
        )

    def columns(self) -> tuple[Array, ...]:
        return self.count, self.sum, self.min, self.max, self.sum_squares

    def copy(self) -> Measures:
        return Measures(*(column.copy() for column in self.columns()))


def no_measures(rows: int) -> Measures:
    return Measures(
        count=np.zeros(rows, np.int64),
        sum=np.zeros(rows, np.int64),
        min=np.full(rows, _NO_MIN, np.int64),
        max=np.full(rows, _NO_MAX, np.int64),
        sum_squares=np.zeros(rows, np.float64),
    )


def absent(rows: int) -> Measures:
    """What `no_measures` says, in no memory and not to be written to: rules ask for many metrics that a profile lacks,
    and what they ask for is kept."""
    nothing = no_measures(1)
    return Measures(*(np.broadcast_to(column, rows) for column in nothing.columns()))


def exclusive_measures(
    metrics: Columns, nodes: int, metric: MetricKind, device: int | None = None, stream: int | None = None
) -> Measures:
    """The `metrics` rows of one metric, gathered per node; `None` takes every device or stream, -1 the CPU."""
    wanted = metrics["metric"] == int(metric)
    if device is not None:
        wanted &= metrics["device"] == device
    if stream is not None:
        wanted &= metrics["stream"] == stream
    wanted &= metrics["count"] != 0
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return absent(nodes)
    result = no_measures(nodes)
    node = metrics["node"][rows]
    if not np.all(node[1:] >= node[:-1]):
        order = np.argsort(node, kind="stable")
        rows, node = rows[order], node[order]
    if np.all(node[1:] > node[:-1]):  # one row a node, as where there are no devices: nothing to bring together
        for name in ("count", "sum", "min", "max", "sum_squares"):
            getattr(result, name)[node] = metrics[name][rows]
        return result
    first = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
    at = node[first]
    result.count[at] = np.add.reduceat(metrics["count"][rows].astype(np.int64), first)
    result.sum[at] = np.add.reduceat(metrics["sum"][rows], first)
    result.min[at] = np.minimum.reduceat(metrics["min"][rows], first)
    result.max[at] = np.maximum.reduceat(metrics["max"][rows], first)
    result.sum_squares[at] = np.add.reduceat(metrics["sum_squares"][rows], first)
    return result
