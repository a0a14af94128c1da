"""A run over time, from the files that it has left in a folder: when was it slow, and what took longer then?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline.report.markup import code, table
from leadline.report.training.build import changes
from leadline.report.training.markdown import change_rows
from leadline.report.training.model import Change
from leadline.units import duration, number

_SLOW = 1.1
_SUFFIX = ".leadline"


@dataclass(frozen=True)
class Stretch:
    """One file of one rank. Times in nanoseconds; `slow`: its mean step is more than a tenth above the median file's of
    its rank."""

    profile: str
    rank: int
    started_at_ns: int
    first: int | None
    last: int | None
    steps: int
    mean_ns: float
    most_ns: int
    between_ns: int
    complete: bool
    slow: bool


@dataclass(frozen=True)
class RunHistory:
    """Stretches in the order in which they began. `slowest` and `typical` are files of one rank, "" where none is slow;
    `longer`: what differs between the two, per step."""

    stretches: tuple[Stretch, ...]
    slowest: str
    typical: str
    longer: tuple[Change, ...]


def run_history(folder: Path) -> RunHistory:
    """Raises OSError, ValueError and ProfileFileError where the two files that are compared cannot be read."""
    from leadline.report.training import as_json, read_facts, summarize

    facts = [(side, read_facts(side)) for side in folder.glob("*_rank*.json")]
    told = [(side, found) for side, found in facts if found.get("leadline_training")]
    told.sort(key=lambda item: int(item[1].get("started_at_ns", 0)))
    means: dict[int, list[float]] = {}
    for _, found in told:
        if found.get("steps"):
            means.setdefault(int(found.get("rank", 0)), []).append(_mean(found))
    medians = {rank: statistics.median_low(several) for rank, several in means.items()}
    stretches = tuple(_stretch(side, found, medians) for side, found in told)
    slow = [one for one in stretches if one.slow and (folder / one.profile).is_file()]
    if not slow:
        return RunHistory(stretches, "", "", ())
    worst = max(slow, key=lambda one: one.mean_ns / medians[one.rank])
    usual = [one for one in stretches if one.rank == worst.rank and (folder / one.profile).is_file() and one.steps]
    typical = min(usual, key=lambda one: abs(one.mean_ns - medians[one.rank]))
    now, before = (as_json(summarize(folder / one.profile)) for one in (worst, typical))
    return RunHistory(stretches, worst.profile, typical.profile, changes(now, before))


def _mean(facts: Mapping[str, Any]) -> float:
    return float(facts.get("steps_sum_ns", 0)) / max(int(facts.get("steps", 0)), 1)


def _stretch(side: Path, facts: Mapping[str, Any], medians: Mapping[int, float]) -> Stretch:
    rank, steps, mean = int(facts.get("rank", 0)), int(facts.get("steps", 0)), _mean(facts)
    return Stretch(
        profile=side.with_suffix(_SUFFIX).name,
        rank=rank,
        started_at_ns=int(facts.get("started_at_ns", 0)),
        first=facts.get("first_step"),
        last=facts.get("last_step"),
        steps=steps,
        mean_ns=mean,
        most_ns=max((int(value) for value in facts.get("step_ns", ())), default=0),
        between_ns=int(facts.get("between_steps_ns", 0)),
        complete=bool(facts.get("complete")),
        slow=steps > 0 and mean > _SLOW * medians.get(rank, 0),
    )


def render_history(history: RunHistory) -> str:
    """The page; ends with a newline."""
    rows = []
    for one in history.stretches:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.started_at_ns / 1e9))
        steps = f"{one.first} to {one.last}" if one.steps else "none"
        word = "slow" if one.slow else "" if one.complete else "its end is missing"
        rows.append(
            [began, str(one.rank), steps, duration(one.mean_ns), duration(one.most_ns), duration(one.between_ns), word]
        )
    heads = ["began (UTC)", "rank", "steps", "mean step", "longest", "between steps", ""]
    page = f"## A run in {number(len(history.stretches))} files\n\n" + table(heads, rows) + "\n"
    if not history.slowest:
        return page + "\nNo file is more than a tenth slower than the others of its rank.\n"
    page += f"\n### What took longer in {code(history.slowest)} than in {code(history.typical)}\n\n"
    if not history.longer:
        return page + "Nothing that is measured differs by more than a hundredth.\n"
    return page + table(["figure", "before", "then", "change"], change_rows(history.longer)) + "\n"
