"""Peak rates of GPUs and ranges of technique factors, read from `factors/*.json`; each knows its source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


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


@dataclass(frozen=True)
class Gpu:
    """One GPU model. Rates are dense; bandwidths count one direction."""

    name: str
    generation: str
    vendor: str
    peak_tflops: Mapping[str, float]
    memory_gb_s: float
    memory_gib: float
    multiprocessors: int
    pcie_gb_s: float
    link_gb_s: float
    source: str
    checked: str = ""
    """What else says the same, and what was found nowhere else."""
    low_precision_kept: Range | None = None
    """Share of the peak ratio between two precisions that its matrix kernels keep, where it differs from the usual."""

    def peak_flops(self, precision: str) -> float | None:
        """Peak of `fp64 fp32 tf32 fp16 bf16 fp8` in FLOP/s; None where the GPU has no such unit."""
        rate = self.peak_tflops.get(precision)
        return None if rate is None else rate * 1e12

    @property
    def memory_bytes_s(self) -> float:
        return self.memory_gb_s * 1e9


_OTHER_MODELS = r"(?! (?:Ti|Super|D|Laptop|Max-Q|Mobile)\b)"
"""A name that goes on like this is that of another model, with other rates."""


def find_gpu(device_name: str) -> Gpu | None:
    """The GPU whose known name is the longest whole-word part of `device_name`; None for an unknown one."""
    best: tuple[int, Gpu] | None = None
    for pattern, gpu in _catalogue():
        named = rf"(?<![0-9a-z]){re.escape(pattern)}(?![0-9a-z]){_OTHER_MODELS}"
        found = re.search(named, device_name, re.IGNORECASE)
        if found and (best is None or len(pattern) > best[0]):
            best = (len(pattern), gpu)
    return None if best is None else best[1]


def known_gpus() -> tuple[Gpu, ...]:
    return tuple({gpu.name: gpu for _, gpu in _catalogue()}.values())


def technique(name: str, *, larger_is_faster: bool) -> Range:
    """The range of a named factor, turned so that `optimistic` means a shorter step time.

    Raises KeyError when `techniques.json` has no such factor.
    """
    return _range(_techniques()[name], larger_is_faster=larger_is_faster)


def _range(entry: Mapping[str, Any], *, larger_is_faster: bool) -> Range:
    least, most = float(entry["least"]), float(entry["most"])
    optimistic, pessimistic = (most, least) if larger_is_faster else (least, most)
    name = str(entry.get("name", "low_precision_kept"))
    return Range(optimistic, float(entry["expected"]), pessimistic, str(entry.get("source", "")), name)


@lru_cache(maxsize=1)
def _catalogue() -> tuple[tuple[str, Gpu], ...]:
    found: list[tuple[str, Gpu]] = []
    for entry in sorted(resources.files(__package__).joinpath("factors").iterdir(), key=lambda item: item.name):
        if not entry.name.endswith(".json") or entry.name in ("mfma.json", "techniques.json", "topologies.json"):
            continue
        content: dict[str, Any] = json.loads(entry.read_text(encoding="utf-8"))
        for row in content["gpus"]:
            fields = {key: value for key, value in row.items() if key != "match"}
            if "low_precision_kept" in fields:
                fields["low_precision_kept"] = _range(fields["low_precision_kept"], larger_is_faster=True)
            gpu = Gpu(generation=content["generation"], vendor=content["vendor"], **fields)
            found += [(pattern, gpu) for pattern in row["match"]]
    return tuple(found)


@lru_cache(maxsize=1)
def _techniques() -> dict[str, dict[str, Any]]:
    text = resources.files(__package__).joinpath("factors").joinpath("techniques.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["factors"]}
