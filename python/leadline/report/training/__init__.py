"""`leadline.print_summary`: what a training run says of itself, printed by rank 0 and kept beside its profiles."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from leadline.profiles import ProfileFileError
from leadline.profiles.reader import open_profile
from leadline.report.training.build import build_summary, changes
from leadline.report.training.markdown import render
from leadline.report.training.model import TrainingSummary

__all__ = ["print_summary", "summarize"]
_SAME_JOB_NS = 3600 * 10**9


class Stopped(Protocol):
    """What is needed of a profiler that has stopped."""

    path: Path | None
    rank: int


def print_summary(profiler: Stopped | None, *, file: Any = None) -> str:
    """Print the summary and write summary.md and summary.json beside the profile; returns the Markdown.

    Does nothing and returns "" for None (profiling disabled) and on ranks other than 0. Raises nothing: a sentence on
    stderr where there is no profile or the folder cannot be written.
    """
    if profiler is None or profiler.rank != 0:
        return ""
    if profiler.path is None:
        print("leadline: there is no profile of this run to summarise.", file=sys.stderr)
        return ""
    try:
        summary = summarize(profiler.path)
    except (ProfileFileError, OSError) as error:
        print(f"leadline: the summary could not be made: {error}", file=sys.stderr)
        return ""
    folder = profiler.path.parent
    before = _json(folder / "summary.json")
    now = as_json(summary)
    summary = dataclasses.replace(summary, changes=changes(now, before))
    text = render(summary)
    try:
        _replace(folder / "summary.md", text)
        _replace(folder / "summary.json", json.dumps(as_json(summary), indent=1))
    except OSError as error:
        print(f"leadline: the summary could not be written to {folder}: {error.strerror}.", file=sys.stderr)
    print(text, file=file)
    return text


def summarize(path: str | os.PathLike[str]) -> TrainingSummary:
    """The summary of a profile and the side files of its job. Raises ProfileFileError and OSError."""
    path = Path(path)
    facts = _json(path.with_suffix(".json"))
    others = []
    for side in sorted(path.parent.glob("*_rank*.json")):
        other = _json(side)
        near = abs(int(other.get("started_at_ns", 0)) - int(facts.get("started_at_ns", 0))) < _SAME_JOB_NS
        if side != path.with_suffix(".json") and near and other.get("job") == facts.get("job") and facts.get("job"):
            others.append(other)
    return build_summary(open_profile(str(path)), facts, others, path.name)


def as_json(summary: TrainingSummary) -> dict[str, Any]:
    """The summary as JSON holds it; `figures` are the ones that are compared from run to run."""
    figures: dict[str, float] = {"step_mean_ns": summary.steps.mean_ns, "step_p95_ns": summary.steps.p95_ns}
    for name, held in summary.peaks:
        figures[f"peak {name}_bytes"] = held
    for _, wall in summary.walls[:1]:
        for field in ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns"):
            figures[f"{field.removesuffix('_ns')}_per_step_ns"] = getattr(wall, field) / max(
                len(summary.steps.recorded), 1
            )
    steps = max(summary.steps.count, 1)
    figures |= {f"{item.name}_per_step_ns": item.time_ns / steps for item in summary.shares}
    return {"leadline_summary": 1, "figures": figures, **dataclasses.asdict(summary)}


def _json(path: Path) -> Mapping[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
