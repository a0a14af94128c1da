"""Counts of values in bins of equal ratio: quantiles of any number of values in bounded memory.

16 bins an octave from 16 on, so a quantile is off by at most 1 part in 32 of itself (3.1 %); the schema says the same
of the table `step_walls`. Histograms of several processes add up. Standard library only: the profiled process fills
them, readers ask them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LAST_BIN = 639
RELATIVE_ERROR = 1 / 32


def bin_of(value: int) -> int:
    """16 an octave; values below 16 share the first bin."""
    if value < 16:
        return 0
    octave = value.bit_length() - 5
    return min(octave * 16 + (value >> octave) - 16, LAST_BIN)


def middle_of(number: int) -> float:
    """The middle of a bin."""
    return ((16 + number % 16) + 0.5) * float(1 << (number // 16))


class Histogram:
    """`scale`: what values are multiplied by before they are binned, for small numbers such as those of a batch."""

    __slots__ = ("bins", "count", "least", "most", "scale", "total")

    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        self.bins: dict[int, int] = {}
        self.count = self.total = self.least = self.most = 0

    def add(self, value: int) -> None:
        """One value; negative ones count as 0."""
        value = max(value, 0)
        if self.count == 0 or value < self.least:
            self.least = value
        if value > self.most:
            self.most = value
        self.count += 1
        self.total += value
        number = bin_of(value * self.scale)
        self.bins[number] = self.bins.get(number, 0) + 1

    def merge(self, other: Histogram) -> None:
        """Add what another one of the same scale counted."""
        if not other.count:
            return
        self.least = min(self.least, other.least) if self.count else other.least
        self.most = max(self.most, other.most)
        self.count += other.count
        self.total += other.total
        for number, count in list(other.bins.items()):
            self.bins[number] = self.bins.get(number, 0) + count

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The value that this share of all did not exceed, to RELATIVE_ERROR; 0 where there are none."""
        wanted, seen = share * self.count, 0
        for number, count in sorted(self.bins.items()):
            seen += count
            if seen >= wanted:
                return min(max(middle_of(number) / self.scale, self.least), self.most)
        return float(self.most)

    def to_json(self) -> dict[str, Any]:
        """Plain values; a copy, so another thread may go on adding."""
        bins = {str(number): count for number, count in dict(self.bins).items()}
        return {
            "count": self.count,
            "sum": self.total,
            "min": self.least,
            "max": self.most,
            "scale": self.scale,
            "bins": bins,
        }

    @classmethod
    def from_json(cls, values: object) -> Histogram:
        """From a file, which anybody may have written: what makes no sense counts nothing."""
        made = cls()
        if not isinstance(values, Mapping):
            return made
        numbers = {name: values.get(name) for name in ("count", "sum", "min", "max", "scale")}
        bins = values.get("bins")
        if not isinstance(bins, Mapping) or not all(type(one) is int and one >= 0 for one in numbers.values()):
            return made
        kept = {int(key): count for key, count in bins.items() if str(key).isdecimal() and type(count) is int}
        if any(number > LAST_BIN or count < 0 for number, count in kept.items()):
            return made
        made.scale = max(values["scale"], 1)
        made.bins = kept
        made.count, made.total = sum(kept.values()), values["sum"]
        made.least, made.most = values["min"], values["max"]
        return made


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """All of one scale as one."""
    listed = [one for one in histograms if one.count]
    made = Histogram(listed[0].scale if listed else 1)
    for one in listed:
        made.merge(one)
    return made
