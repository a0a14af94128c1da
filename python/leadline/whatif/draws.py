"""Facts that no trace holds, each a range: of techniques, read from `factors/techniques.json`, with their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline.hardware.gpus import Gpu


class Draw:
    """Where in their ranges the uncertain facts of a prediction are taken: 0 is the end that gives the shorter step
    time, 0.5 what is expected, 1 the other end. One place for all, or one by name; `asked` are the names in use."""

    def __init__(self, everywhere: float = 0.5, places: Mapping[str, float] | None = None) -> None:
        self._everywhere = everywhere
        self._places = dict(places or {})
        self.asked: dict[str, None] = {}

    def place(self, name: str) -> float:
        """Where in its range the fact of this name is taken."""
        self.asked[name] = None
        return self._places.get(name, self._everywhere)

    def hopeful(self, name: str) -> bool:
        """Whether something that only the short end of the range assumes is taken to hold."""
        return self.place(name) < 0.25

    def cautious(self, name: str) -> bool:
        """Whether something that only the long end of the range assumes is taken to hold."""
        return self.place(name) > 0.75


@dataclass(frozen=True)
class Range:
    """A factor that is not known exactly. `optimistic` gives the shorter step time."""

    optimistic: float
    expected: float
    pessimistic: float
    source: str = ""
    name: str = ""
    """Ranges of one name are drawn together, over all scenarios."""

    def at(self, draw: Draw) -> float:
        place = draw.place(self.name)
        if place <= 0.5:
            return self.optimistic + (self.expected - self.optimistic) * place * 2
        return self.expected + (self.pessimistic - self.expected) * (place - 0.5) * 2

    def __str__(self) -> str:
        least, most = sorted((self.optimistic, self.pessimistic))
        return f"{self.expected:g} ({least:g} to {most:g})"


def technique(name: str, *, larger_is_faster: bool) -> Range:
    """The range of a named factor, turned so that `optimistic` means a shorter step time.

    Raises KeyError when `techniques.json` has no such factor.
    """
    return _range(_techniques()[name], larger_is_faster=larger_is_faster)


def kept_of(gpu: Gpu) -> Range | None:
    """What the matrix kernels of a GPU keep of the ratio of its peaks, where its table says so."""
    if gpu.low_precision_kept is None:
        return None
    least, expected, most = gpu.low_precision_kept
    return Range(most, expected, least, gpu.source, "low_precision_kept")


def _range(entry: Mapping[str, Any], *, larger_is_faster: bool) -> Range:
    least, most = float(entry["least"]), float(entry["most"])
    optimistic, pessimistic = (most, least) if larger_is_faster else (least, most)
    return Range(optimistic, float(entry["expected"]), pessimistic, str(entry.get("source", "")), str(entry["name"]))


@lru_cache(maxsize=1)
def _techniques() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("factors").joinpath("techniques.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["factors"]}
