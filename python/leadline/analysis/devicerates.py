"""How fast a device can be: from the table of known GPUs, else as `leadline doctor --peak` has measured it here.

The measured rates stand in one JSON file of the user's: {"rates": {NAME: {"fp32": FLOP/s, ..., "bytes_s": BYTES/s}}}.
NAME is a device's name, or `cpu_name` of a machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline._output import write_text
from leadline.hardware.gpus import find_gpu

VARIABLE = "LEADLINE_RATES"
"""Environment: another file for measured rates."""


@dataclass(frozen=True)
class Rate:
    """Operations per second, 0 where nobody knows, and where the figure is from."""

    flops: float
    source: str


def rates_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where measured rates are kept."""
    if given := environment.get(VARIABLE):
        return Path(given)
    cache = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "leadline" / "rates.json"


def cpu_name(host: Mapping[str, Any]) -> str:
    """What a machine's processors are called among measured rates; `host` as in a profile's `meta`."""
    return f"CPU of {host.get('hostname', '')}, {host.get('cpus', 0)} cores"


def with_threads(host: Mapping[str, Any], threads: int) -> str:
    """The same with so many threads of an operator."""
    return f"{cpu_name(host)}, {threads} threads"


def peak_rate(device: str, precision: str) -> Rate:
    """Of a GPU by its name or of a CPU by `cpu_name`, in `fp64 fp32 tf32 fp16 bf16 fp8`."""
    gpu = find_gpu(device)
    known = gpu.peak_flops(precision) if gpu is not None else None
    if gpu is not None and known is not None:
        return Rate(known, gpu.source)
    measured = measured_rates().get(device, {}).get(precision)
    if isinstance(measured, int | float) and measured > 0:
        return Rate(float(measured), "measured by leadline doctor --peak")
    return Rate(0.0, "unknown; leadline doctor --peak measures it")


def measured_rates() -> Mapping[str, Mapping[str, float]]:
    """All that was measured; nothing where there is no such file or it is another's."""
    try:
        found = json.loads(rates_file().read_text(encoding="utf-8"))
        rates = found["rates"]
        return {name: dict(values) for name, values in rates.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_rates(rates: Mapping[str, Mapping[str, float]]) -> Path:
    """Put these beside what was measured before; returns the file. Raises OSError."""
    path = rates_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"rates": {**measured_rates(), **rates}}, indent=1))
    return path
