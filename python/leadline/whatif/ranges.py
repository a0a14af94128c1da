"""From what is uncertain about a prediction to ranges of its time and of its gain that hold in nine cases of ten.

Every uncertain fact has a place in its range; one such place is drawn per fact and shared by all scenarios, so that two
answers about one trace differ by what they ask and not by luck. How the gain answers to each fact is found by moving
that fact alone to both ends; the answers add up in the logarithm. What the graph itself may have wrong (residuals that
were frozen, waits that were guessed, other ranks that nobody recorded) answers in the same way.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field

DRAWS = 801
_LOW, _HIGH = 0.05, 0.95
_STEP_SPREAD = 0.05
"""Relative standard deviation of a step that is assumed before any is seen, with the weight of two steps."""
_GAIN_SPREAD = 0.04
"""The same for the gain of a step, where a change changes much."""
_LARGEST = 600.0
"""Logarithm of a gain, beyond which times of a damaged trace are no numbers any more."""
_SCALING = 0.03
"""Standard deviation of the gain, for each factor of e in the samples that a step handles."""
_PRIOR = 2

Floats = NDArray[np.float64]


@dataclass
class Doubts:
    """What may move the logarithm of a gain. `facts`: by name, its change at the short and at the long end of the
    fact's range. `either_way`: standard deviations of errors that may have both signs, by name."""

    facts: dict[str, tuple[float, float]] = field(default_factory=dict)
    either_way: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranges:
    """Nine of ten draws lie between the ends; times in ns per step. `chance`: share of the draws with a gain worth
    having."""

    low_ns: float
    high_ns: float
    low_gain: float
    high_gain: float
    chance: float


def ranges(
    gain: float,
    samples: float,
    base_steps_ns: Sequence[float],
    scatter_of_steps: Sequence[float],
    doubts: Doubts,
    worth: float,
    least_gain: float = 0.0,
    most_gain: float = math.inf,
) -> Ranges:
    """Ranges of the time and the gain of one prediction.

    gain: replayed over predicted time, samples counted; base_steps_ns: the steps as measured; scatter_of_steps: how
    far each step is from gaining as the mean does, relative to the mean step; least_gain and
    most_gain: what it cannot fall below or exceed.
    """
    if not math.isfinite(gain) or gain <= 0:
        return Ranges(0.0, 0.0, gain, gain, 1.0)
    moved = np.full(DRAWS, math.log(gain))
    for name, (short, long) in doubts.facts.items():
        place = uniform(name)
        moved += np.where(place < 0.5, short * (1 - 2 * place), long * (2 * place - 1))
    for name, deviation in doubts.either_way.items():
        moved += deviation * normal(name)
    moved += _spread_of_gain(scatter_of_steps, math.log(gain / samples)) * student("steps: gain", len(scatter_of_steps))
    if least_gain > 0:
        moved = np.maximum(moved, math.log(min(least_gain, gain)))
    if samples != 1:
        # what a trace of one size does not show: work that grows with the samples, or with the workers
        moved += _SCALING * abs(math.log(samples)) * normal("more samples")
    if most_gain < math.inf:
        moved = np.minimum(moved, math.log(max(most_gain, gain)))
    moved = np.clip(moved, -_LARGEST, _LARGEST)
    count = max(len(base_steps_ns), 1)
    mean = float(np.mean(base_steps_ns)) if len(base_steps_ns) else 0.0
    lengths = 1 + step_error(base_steps_ns) * student("steps: time", count)
    times = mean * np.maximum(lengths, 0.05) * samples / np.exp(moved)
    low_ns, high_ns = np.quantile(times, (_LOW, _HIGH)).tolist()
    low, high = np.exp(np.quantile(moved, (_LOW, _HIGH))).tolist()
    # what is predicted is never outside what is said about it
    point = mean * samples / gain
    return Ranges(
        min(low_ns, point), max(high_ns, point), min(low, gain), max(high, gain), float((np.exp(moved) > worth).mean())
    )


def by_steps(before_ns: NDArray[np.int64], after_ns: NDArray[np.int64]) -> list[float]:
    """By step, how far its time before is from the mean gain times its time after, over the mean step: what the gain
    depends on the step. Long steps count as they do in the mean. Nothing where the edit has other steps."""
    old, new = before_ns.astype(np.float64), after_ns.astype(np.float64)
    if old.size != new.size or new.sum() <= 0 or old.sum() <= 0:
        return []
    found: list[float] = ((old - old.sum() / new.sum() * new) / old.mean()).tolist()
    return found


def step_error(steps_ns: Sequence[float]) -> float:
    """Standard error of the mean step, relative to it; few steps count as little more than what is usual."""
    count = len(steps_ns)
    mean = float(np.mean(steps_ns)) if count else 0.0
    if count == 0 or mean <= 0:
        return _STEP_SPREAD
    squares = float(np.sum((np.asarray(steps_ns, dtype=np.float64) / mean - 1) ** 2))
    return math.sqrt((_PRIOR * _STEP_SPREAD**2 + squares) / (_PRIOR + count - 1) / count)


def _spread_of_gain(scatter: Sequence[float], size: float) -> float:
    """Standard error of the mean gain in the logarithm; a change that changes nothing does so in every step."""
    share = 1 - math.exp(-abs(size) / 0.2)
    count = max(len(scatter), 1)
    squares = float(np.sum(np.square(np.asarray(scatter, dtype=np.float64))))
    return math.sqrt((_PRIOR * (_GAIN_SPREAD * share) ** 2 + squares) / (_PRIOR + count - 1) / count)


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def uniform(name: str) -> Floats:
    """Places in a fact's range: evenly spread, in an order of the fact's own."""
    return _generator(name).permutation((np.arange(DRAWS) + 0.5) / DRAWS)


def normal(name: str) -> Floats:
    """Errors of both signs with standard deviation 1, without luck in their mean."""
    drawn: Floats = _generator(name).standard_normal(DRAWS)
    centred: Floats = (drawn - drawn.mean()) / drawn.std()
    return centred


def student(name: str, count: int) -> Floats:
    """The same with the heavier tails that an error estimated from `count` values has."""
    return _generator(name).standard_t(_PRIOR + count, DRAWS)


def responses(expected: float, ends: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """By fact the change of the logarithm of the gain at both ends, of times that the fact alone gives."""
    found = {}
    for name, (short, long) in ends.items():
        if expected > 0 and short > 0 and long > 0:
            found[name] = (math.log(expected / short), math.log(expected / long))
    return found
