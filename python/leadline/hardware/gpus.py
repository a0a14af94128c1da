"""Peak rates of GPUs, read from `tables/*.json`; each knows its source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass


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
    low_precision_kept: tuple[float, float, float] | None = None
    """Share of the peak ratio between two precisions that its matrix kernels keep (least, expected, most), where it
    differs from the usual."""

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


@lru_cache(maxsize=1)
def _catalogue() -> tuple[tuple[str, Gpu], ...]:
    found: list[tuple[str, Gpu]] = []
    for entry in sorted(Path(__file__).with_name("tables").iterdir()):
        if not entry.name.endswith(".json") or entry.name == "mfma.json":
            continue
        content: dict[str, Any] = json.loads(entry.read_text(encoding="utf-8"))
        for row in content["gpus"]:
            fields = {key: value for key, value in row.items() if key != "match"}
            if "low_precision_kept" in fields:
                kept = fields["low_precision_kept"]
                fields["low_precision_kept"] = tuple(float(kept[name]) for name in ("least", "expected", "most"))
            gpu = Gpu(generation=content["generation"], vendor=content["vendor"], **fields)
            found += [(pattern, gpu) for pattern in row["match"]]
    return tuple(found)
