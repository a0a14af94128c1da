"""Is a change more than noise? Always judged on the ratio that is shown: the median of B's runs over the median of A's.

With four runs or more on both sides: exact rank statistics on one number per run (Mann and Whitney 1947, Hodges and
Lehmann 1963), never on pooled steps, which are not independent; the interval holds the true ratio in 90 of 100 cases
(each end in 95). With fewer: the spread of the steps inside the runs, where it was measured, and a margin for what
differs from run to run; without either nothing below `SURE_RATIO` is called a change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.compare.limits import BETWEEN_RUNS, ENOUGH_RUNS, ERRORS, SURE_RATIO

Floats = NDArray[np.float64]

_ALPHA = 0.05


@dataclass(frozen=True)
class Ratios:
    """Per row: B over A, an interval that holds it, and the one-sided p-values of "slower" and "faster"; `exact` where
    those are of rank statistics over runs, else they are 0 (outside of the interval) or 1."""

    estimate: Floats
    low: Floats
    high: Floats
    slower: Floats
    faster: Floats
    exact: bool


def ratios(a: Floats, b: Floats, noise: Floats | None = None) -> Ratios:
    """Rows are what is compared, columns are runs; values must not be negative, 0 over 0 is 1. `noise`: per row the
    relative standard error of the ratio from the steps inside the runs; NaN where it is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = b[:, :, None] / a[:, None, :]
        estimate = np.median(b, axis=1) / np.median(a, axis=1)
    estimate = np.where(np.isnan(estimate), 1.0, estimate)
    pairs = np.where(np.isnan(pairs), 1.0, pairs).reshape(len(a), a.shape[1] * b.shape[1])
    pairs.sort(axis=1)
    runs_a, runs_b = a.shape[1], b.shape[1]
    if min(runs_a, runs_b) < ENOUGH_RUNS:
        margin = sure_ratio(np.full(len(a), np.nan) if noise is None else noise)
        low, high = np.minimum(pairs[:, 0], estimate / margin), np.maximum(pairs[:, -1], estimate * margin)
        return Ratios(estimate, low, high, np.where(low > 1, 0.0, 1.0), np.where(high < 1, 0.0, 1.0), False)
    above = (pairs > 1).sum(axis=1) + 0.5 * (pairs == 1).sum(axis=1)
    below = np.cumsum(_null(runs_a, runs_b))
    cut = max(int(np.searchsorted(below, _ALPHA, side="right")) - 1, 0)  # largest u with P(U <= u) <= alpha
    total = runs_a * runs_b

    def tail(count: Floats) -> Floats:
        found: Floats = below[np.clip(np.floor(count).astype(int), 0, total)]
        return found

    low, high = np.minimum(pairs[:, cut], estimate), np.maximum(pairs[:, total - 1 - cut], estimate)
    slower, faster = np.where(estimate > 1, tail(total - above), 1.0), np.where(estimate < 1, tail(above), 1.0)
    return Ratios(estimate, low, high, slower, faster, True)


def sure_ratio(noise: Floats) -> Floats:
    """From which ratio on few runs show a change, for relative standard errors of the steps inside them."""
    found: Floats = np.where(np.isnan(noise), SURE_RATIO, BETWEEN_RUNS * np.exp(ERRORS * np.nan_to_num(noise)))
    return found


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


_DRAWS = 4000


def paired_change(ratios: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Of B over A in pairs that ran beside each other: the median change, and an interval by the smoothed bootstrap (a
    plain one is too narrow for few pairs: it draws no value beyond those that were seen). Fewer than two pairs have an
    interval without end."""
    logs = np.log(np.asarray(ratios, np.float64))
    count = len(logs)
    middle = float(np.median(logs))
    if count < 2:
        return float(np.expm1(middle)), -1.0, math.inf
    draw = np.random.default_rng(0)
    smooth = float(logs.std(ddof=1)) / math.sqrt(count - 1)
    drawn = draw.choice(logs, (_DRAWS, count)) + draw.normal(0, smooth, (_DRAWS, count))
    medians = middle + (np.median(drawn, axis=1) - middle) * _few(count)
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.expm1(middle)), float(np.expm1(min(low, middle))), float(np.expm1(max(high, middle)))


def _few(count: int) -> float:
    """What few pairs know less of their spread than many: Student's quantile over the normal one, approximately."""
    return 1 + 1.45 / max(count - 1, 1)
