"""Steps as they were recorded at their borders: what they took and what was counted in them. Times are nanoseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline._histogram import middle_of
from leadline.profiles.step_rows import StepRows, Sums, added

Rows = NDArray[np.int64]
WARM = 3.0
"""Times the median: a step at the beginning that took as long warms up."""
STEADY = 3
"""Steps behind those at the beginning that are needed to tell."""
ACCIDENT = 20
"""Times the mean of all others: a measurement that took as long was a first call, or another job on the machine."""
ENOUGH = 5
"""Measurements: of fewer the largest is too large a part of what is known."""
_BATCHES = 4  # rows of consecutive steps: of fewer their spread says nothing


@dataclass(frozen=True)
class Recorded:
    """The steps of one process, all of its threads that crossed their borders together."""

    rows: StepRows

    @property
    def count(self) -> int:
        return self.rows.count

    @cached_property
    def sums(self) -> Sums:
        """Of all steps."""
        return added(self.rows.spans)

    @property
    def mean_ns(self) -> float:
        return self.sums["wall_ns"] / self.count

    @cached_property
    def thirds(self) -> tuple[Sums, ...]:
        """The first, middle and last third, as near as rows of consecutive steps allow; fewer where there are fewer
        than three rows."""
        spans = self.rows.spans
        if len(spans) < 3:
            return tuple(spans)
        ends = np.cumsum([span["count"] for span in spans])
        first = 1 + int(np.argmin(np.abs(ends[:-2] - ends[-1] / 3)))
        second = 1 + first + int(np.argmin(np.abs(ends[first:-1] - ends[-1] * 2 / 3)))
        return tuple(added(part) for part in (spans[:first], spans[first:second], spans[second:]))

    def quantile_ns(self, share: float) -> float:
        """The wall time that this share of the steps did not exceed, to 3 %: from the histogram."""
        wanted, seen = share * sum(self.rows.walls.values()), 0
        for number, count in sorted(self.rows.walls.items()):
            seen += count
            if seen >= wanted:
                return float(np.clip(middle_of(number), self.sums["wall_min_ns"], self.sums["wall_max_ns"]))
        return self.mean_ns

    @cached_property
    def warm_up(self) -> tuple[Sums, ...]:
        """Steps at the beginning that took much longer than those behind them: caches, workers, algorithms."""
        alone = {one["first"]: one for one in self.rows.slowest}
        number = self.rows.spans[0]["first"]
        usual = WARM * self.quantile_ns(0.5)
        found: list[Sums] = []
        most = min(self.count // 2, self.count - STEADY)
        while len(found) < most and number in alone and alone[number]["wall_ns"] >= usual:
            found.append(alone[number])
            number += 1
        return tuple(found)

    @cached_property
    def accident(self) -> Sums | None:
        """The slowest step behind warm-up, where it took so many times the mean of the others that it was another job
        on the machine."""
        others = [step for step in self.rows.slowest if step not in self.warm_up]
        number = self.count - len(self.warm_up) - 1
        left = self.sums["wall_ns"] - sum(step["wall_ns"] for step in self.warm_up)
        if (
            not others
            or number + 1 < ENOUGH
            or others[0]["wall_ns"] * number <= ACCIDENT * (left - others[0]["wall_ns"])
        ):
            return None
        return others[0]

    def mean_of(self, column: str) -> float:
        """Of a step without warm-up and accident, as the mean wall time is; below 0 where it is not known."""
        left, number = self.sums[column], self.sums["counted"]
        if not number or left < 0:
            return -1.0
        for one in (*self.warm_up, self.accident):
            if one is not None and one["counted"]:
                left, number = left - max(one[column], 0), number - 1
        return max(left / number, 0.0) if number else -1.0

    @cached_property
    def standard_error_ns(self) -> float:
        """Of the mean without warm-up, from the means of rows of consecutive steps: neighbours are alike, so a row is
        one measurement. Infinite where there are too few rows."""
        first = self.rows.spans[0]["first"] + len(self.warm_up)
        rows = [span for span in self.rows.spans if span["first"] >= first]
        size = max((span["count"] for span in rows), default=0)
        means = np.array([self._mean_of_row(span) for span in rows if span["count"] * 2 > size])
        if len(means) < _BATCHES:
            return math.inf
        return float(means.std(ddof=1) / math.sqrt(len(means)))

    def _mean_of_row(self, span: Sums) -> float:
        odd = self.accident
        if odd is None or not span["first"] <= odd["first"] < span["first"] + span["count"] or span["count"] < 2:
            return float(span["wall_ns"] / span["count"])
        return float((span["wall_ns"] - odd["wall_ns"]) / (span["count"] - 1))


def without_first_calls(
    total: Rows, count: Rows, largest: Rows, accident: float = ACCIDENT, least_ns: float = 0.0
) -> Rows:
    """Sums in which the largest measurement counts as the mean of the others, where it was an accident: so many times
    that mean, and `least_ns` long."""
    enough = count >= ENOUGH
    others = np.where(enough, total - largest, 0)
    spared = others * (count / np.maximum(count - 1, 1))
    first = enough & (largest > accident * others / np.maximum(count - 1, 1)) & (largest >= least_ns)
    found: Rows = np.where(first, spared.astype(np.int64), total)
    return found


def by_process(rows: Mapping[int, StepRows], process_of: Sequence[int]) -> dict[int, Recorded]:
    """What each process recorded. Several threads that take turns at the borders are one row of steps."""
    made: dict[int, list[StepRows]] = {}
    for thread, one in sorted(rows.items()):
        if one.spans:
            made.setdefault(process_of[thread], []).append(one)
    return {process: Recorded(_one_after_another(parts)) for process, parts in made.items()}


def _one_after_another(parts: Sequence[StepRows]) -> StepRows:
    if len(parts) == 1:
        return parts[0]
    spans = tuple(sorted((span for part in parts for span in part.spans), key=lambda one: one["first"]))
    slowest = sorted((one for part in parts for one in part.slowest), key=lambda one: -one["wall_ns"])
    walls: dict[int, int] = {}
    for part in parts:
        for number, count in part.walls.items():
            walls[number] = walls.get(number, 0) + count
    return StepRows(spans, tuple(slowest), walls)
