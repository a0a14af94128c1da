"""Is a change more than noise? Exact rank statistics on one number per run (Mann and Whitney 1947, Hodges and Lehmann
1963), never on pooled steps, which are not independent.

With four runs or more on both sides: the estimate is the median of all ratios, the interval holds the true ratio in 90
of 100 cases (each end in 95). With fewer, nothing below `SURE_RATIO` is called a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ENOUGH_RUNS = 4
SURE_RATIO = 1.3
"""With few runs per side a smaller change of time cannot be told from noise: on a shared machine two runs of one
program differ by as much."""
_ALPHA = 0.05


@dataclass(frozen=True)
class Ratios:
    """Per row: B over A, the interval, and the one-sided p-values of "slower" and "faster". Where there are too few
    runs the interval is as wide as `SURE_RATIO` allows."""

    estimate: Floats
    low: Floats
    high: Floats
    slower: Floats
    faster: Floats
    exact: bool


def ratios(a: Floats, b: Floats) -> Ratios:
    """Rows are what is compared, columns are runs; values must be positive, others give the ratio 1 or infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = b[:, :, None] / a[:, None, :]
    pairs = np.where(np.isnan(pairs), 1.0, pairs).reshape(len(a), a.shape[1] * b.shape[1])
    pairs.sort(axis=1)
    estimate = np.median(pairs, axis=1)
    runs_a, runs_b = a.shape[1], b.shape[1]
    above = (pairs > 1).sum(axis=1) + 0.5 * (pairs == 1).sum(axis=1)
    if min(runs_a, runs_b) < ENOUGH_RUNS:
        sure_slower = (pairs[:, 0] > 1) & (estimate >= SURE_RATIO)
        sure_faster = (pairs[:, -1] < 1) & (estimate <= 1 / SURE_RATIO)
        return Ratios(
            estimate,
            np.where(sure_slower, pairs[:, 0], np.minimum(pairs[:, 0], estimate / SURE_RATIO)),
            np.where(sure_faster, pairs[:, -1], np.maximum(pairs[:, -1], estimate * SURE_RATIO)),
            np.where(sure_slower, 0.0, 1.0),
            np.where(sure_faster, 0.0, 1.0),
            False,
        )
    below = np.cumsum(_null(runs_a, runs_b))
    cut = max(int(np.searchsorted(below, _ALPHA, side="right")) - 1, 0)  # largest u with P(U <= u) <= alpha
    total = runs_a * runs_b

    def tail(count: Floats) -> Floats:
        found: Floats = below[np.clip(np.floor(count).astype(int), 0, total)]
        return found

    return Ratios(estimate, pairs[:, cut], pairs[:, total - 1 - cut], tail(total - above), tail(above), True)


@cache
def _null(runs_a: int, runs_b: int) -> Floats:
    """Probability of every value of Mann and Whitney's U where nothing differs."""
    ways = np.zeros((runs_a + 1, runs_a * runs_b + 1))
    ways[0, 0] = 1  # ways to choose places of the runs of A by how many runs of B stand before them
    for before in range(runs_b + 1):
        for chosen in range(1, runs_a + 1):
            shifted = np.zeros(ways.shape[1])
            shifted[before:] = ways[chosen - 1, : ways.shape[1] - before]
            ways[chosen] += shifted
    last: Floats = ways[runs_a] / ways[runs_a].sum()
    return last


def discoveries(p: Floats, rate: float = _ALPHA) -> NDArray[np.bool_]:
    """Which of many tests stand when at most `rate` of those that do may be false (Benjamini and Hochberg 1995)."""
    if not len(p):
        return np.zeros(0, np.bool_)
    order = np.argsort(p, kind="stable")
    passing = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    found = np.zeros(len(p), np.bool_)
    if len(passing):
        found[order[: passing[-1] + 1]] = True
    return found
