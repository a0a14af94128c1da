"""Writes what was predicted of a remedy beside what was measured; `profiles.tried` reads it.

`summary` says how far predictions can be trusted: how many ranges held, how narrow they are, how large the error is.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline._dataclass import asdict, dataclass
from leadline._version import __version__
from leadline.profiles.tried import NAME, read
from leadline.trials.model import MEASURED, Trial, has_held

__all__ = ["NAME", "Summary", "append", "read", "summary"]


@dataclass(frozen=True)
class Summary:
    """Of entries with a range and a measurement. Shares of the step: `error` is the median distance of what was
    predicted and what was measured, `error_95` that which 19 of 20 do not exceed, `half_width` the median half of a
    range. `open`: ranges that a measurement was too coarse to judge. `unreadable`: lines that are no entry."""

    entries: int
    measured: int
    predicted: int
    held: int
    open: int
    error: float
    error_95: float
    half_width: float
    unreadable: int


def append(path: Path, trial: Trial, rules: Mapping[str, Sequence[str]]) -> int:
    """Adds a line for each row that was measured; returns how many. A directory that cannot be written gets none.
    `rules`: findings that each row is the remedy of."""
    lines = [json.dumps(entry, allow_nan=False) for entry in _entries(trial, rules)]
    if not lines:
        return 0
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
    except OSError:
        return 0
    return len(lines)


def _entries(trial: Trial, rules: Mapping[str, Sequence[str]]) -> Iterable[dict[str, Any]]:
    base = trial.rows[0]
    for row in trial.rows[1:]:
        if row.change is None or row.verdict not in MEASURED or not -1 < row.change.low <= row.change.high < 1e6:
            continue
        yield {
            "schema": 1,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "leadline": __version__,
            "program": trial.program,
            "versions": dict(trial.versions),
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
            "remedy": row.name,
            "rules": list(rules.get(row.name, ())),
            "step_ns": base.step_ns,
            "predicted": asdict(row.predicted) if row.predicted is not None else None,
            "measured": asdict(row.change),
            "held": row.held,
            "verdict": row.verdict,
            "equality": row.equality.kind if row.equality is not None else "unknown",
            "rounds": trial.rounds,
            "steps": trial.steps,
            "noise": trial.noise,
            "sources": dict(trial.sources),
        }


def summary(entries: Sequence[Mapping[str, Any]], unreadable: int = 0) -> Summary:
    with_range = [one for one in entries if one.get("predicted")]
    errors = sorted(abs(one["predicted"]["median"] - one["measured"]["median"]) for one in with_range)
    widths = [(one["predicted"]["high"] - one["predicted"]["low"]) / 2 for one in with_range]
    held = [has_held(one["measured"], one["predicted"]) for one in with_range]
    return Summary(
        len(entries),
        len(entries),
        len(with_range),
        held.count(True),
        held.count(None),
        statistics.median(errors) if errors else 0.0,
        errors[min(int(0.95 * len(errors)), len(errors) - 1)] if errors else 0.0,
        statistics.median(widths) if widths else 0.0,
        unreadable,
    )
