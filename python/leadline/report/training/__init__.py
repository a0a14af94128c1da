"""`leadline.print_summary`: what a training run says of itself, printed by rank 0 and kept beside its profiles."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from leadline._output import OutputError, check_kind, kind_of, write_text
from leadline.analysis.memorysnapshot import Snapshot, SnapshotError, read_snapshot
from leadline.profiles import Profile, ProfileFileError, Tree
from leadline.profiles.merge import merge_profiles
from leadline.profiles.reader import open_profile
from leadline.profiles.writer import write_profile
from leadline.report.training.build import build_summary, changes, expected_ranks
from leadline.report.training.markdown import render
from leadline.report.training.model import TrainingSummary

__all__ = ["print_summary", "summarize", "summarize_shared"]
_SAME_JOB_NS = 3600 * 10**9
SUFFIX = ".leadline"


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
    if profiler.path is None and getattr(getattr(profiler, "journal", None), "shared", False):
        print("leadline: the summary is made when this program has ended, with its profile.", file=sys.stderr)
        return ""
    if profiler.path is None:
        print("leadline: there is no profile of this run to summarise.", file=sys.stderr)
        return ""
    try:
        merged = merge_ranks(profiler.path)
        if merged is not None:
            print(f"leadline: merged all ranks into {merged}.", file=sys.stderr)
        summary = summarize(profiler.path)
    except (ProfileFileError, OSError, ValueError) as error:
        print(f"leadline: the summary could not be made: {error}", file=sys.stderr)
        return ""
    folder = profiler.path.parent
    before = read_facts(folder / "summary.json")
    now = as_json(summary)
    summary = dataclasses.replace(summary, changes=changes(now, before))
    text = render(summary)
    try:
        _write(folder / "summary.md", text, folder / "summary.json", as_json(summary))
    except OSError as error:
        print(f"leadline: the summary could not be written to {folder}: {error.strerror}.", file=sys.stderr)
    except OutputError as error:
        print(f"leadline: the summary was not written. {error}", file=sys.stderr)
    upload = getattr(profiler, "upload", None)
    if callable(upload):
        upload([folder / "summary.md", folder / "summary.json", *([merged] if merged is not None else [])])
    print(text, file=file)
    return text


def summarize_shared(path: Path) -> Path | None:
    """The page of a profile that `leadline run` has made, written beside it as STEM.summary.md with STEM.summary.json,
    where the program had training profilers; None where it had none. Raises ProfileFileError and OSError."""
    profile = open_profile(str(path))
    began = int(profile.meta.get("started_at_ns") or 0)
    sides = [read_facts(side) for side in sorted(path.parent.glob(f"{path.stem}_rank*.json"))]
    told = [side for side in sides if side.get("shared") and int(side.get("started_at_ns", 0)) >= began]
    if not told:
        return None
    first = min(told, key=lambda side: int(side.get("rank", 0)))
    others = [side for side in told if side is not first]
    summary = build_summary(profile, first, others, path.name)
    page, data = path.with_suffix(".summary.md"), path.with_suffix(".summary.json")
    summary = dataclasses.replace(summary, changes=changes(as_json(summary), read_facts(data)))
    _write(page, render(summary), data, as_json(summary))
    return page


def _write(page: Path, text: str, data: Path, facts: Mapping[str, Any]) -> None:
    """Both, or neither where files are there that no summary left. Raises OSError and OutputError."""
    written = json.dumps(facts, indent=1)
    if "figures" not in read_facts(data):
        check_kind(data, kind_of(written.encode()))
        check_kind(page, kind_of(text.encode("utf-8", "replace")))
    write_text(page, text)
    write_text(data, written)


def summarize(path: str | os.PathLike[str], profile: Profile | None = None) -> TrainingSummary:
    """The summary of a profile (opened, where it is given) and the side files of its job. Raises ProfileFileError and
    OSError."""
    path = Path(path)
    facts = read_facts(path.with_suffix(".json"))
    profile = profile or open_profile(str(path))
    others = list(_other_ranks(path, facts).values())
    return build_summary(profile, facts, others, path.name, _snapshot(path, profile.tree))


def _snapshot(path: Path, tree: Tree) -> Snapshot | None:
    place = path.with_suffix(".snapshot.pickle")
    if not place.is_file():
        return None
    try:
        return read_snapshot(place, tree)
    except SnapshotError as error:
        print(f"leadline: {error}", file=sys.stderr)
        return None


def merge_ranks(path: Path) -> Path | None:
    """One profile of all ranks, beside that of rank 0 and with `merged` for its rank, where the configuration asks for
    it; None where it does not. Waits for files, never for a process. Raises ProfileFileError, OSError, ValueError."""
    facts = read_facts(path.with_suffix(".json"))
    config = facts.get("config") or {}
    if not config.get("merge"):
        return None
    deadline = time.monotonic() + float(config.get("merge_timeout_s", 0))
    while True:
        others = _other_ranks(path, facts)
        whole = {side: other for side, other in others.items() if other.get("complete")}
        late = expected_ranks(facts, list(others.values())) - {int(other["rank"]) for other in whole.values()}
        if not late or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if late:
        names = ", ".join(str(rank) for rank in sorted(late))
        print(
            f"leadline: rank {names} has written no complete profile in time and is not in the merged file.",
            file=sys.stderr,
        )
    paths = [path, *(side.with_suffix(SUFFIX) for side in whole)]
    target = path.with_name(path.name.replace(f"_rank{facts.get('rank')}_", "_merged_"))
    write_profile(target, merge_profiles([open_profile(str(one)) for one in paths if one.exists()]))
    return target


def _other_ranks(path: Path, facts: Mapping[str, Any]) -> dict[Path, Mapping[str, Any]]:
    """Side files of the other ranks of the same job, the newest of each rank."""
    found: dict[int, tuple[Path, Mapping[str, Any]]] = {}
    for side in path.parent.glob("*_rank*.json"):
        other = read_facts(side)
        near = abs(int(other.get("started_at_ns", 0)) - int(facts.get("started_at_ns", 0))) < _SAME_JOB_NS
        if side == path.with_suffix(".json") or not near or not facts.get("job") or other.get("job") != facts["job"]:
            continue
        rank = int(other.get("rank", -1))
        if rank not in found or found[rank][1]["started_at_ns"] < other["started_at_ns"]:
            found[rank] = (side, other)
    return {side: other for _, (side, other) in sorted(found.items())}


def as_json(summary: TrainingSummary) -> dict[str, Any]:
    """The summary as JSON holds it; `figures` are the ones that are compared from run to run."""
    steps = summary.steps.measured
    figures: dict[str, float] = {}
    if steps:  # without steps nothing is said of one
        figures = {"step_mean_ns": summary.steps.mean_ns, "step_p95_ns": summary.steps.p95_ns}
    for name, held in summary.peaks:
        figures[f"peak {name}_bytes"] = held
    for _, wall in summary.walls[:1] if summary.steps.recorded else ():
        for field in ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns"):
            figures[f"{field.removesuffix('_ns')}_per_step_ns"] = getattr(wall, field) / len(summary.steps.recorded)
    if summary.efficiency is not None:
        figures["operations per step"] = summary.efficiency.flops
        if summary.efficiency.mfu is not None:
            figures["MFU in percent"] = 100 * summary.efficiency.mfu
    figures |= {f"{item.name}_per_step_ns": item.time_ns / steps for item in summary.shares if steps}
    return {"leadline_summary": 1, "figures": figures, **dataclasses.asdict(summary)}


def read_facts(path: Path) -> Mapping[str, Any]:
    """What a side file or a summary.json holds; nothing where there is none or it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}
