"""Who was late when: the stragglers of every stretch of a run, neighbouring stretches that say the same as one line."""

from __future__ import annotations

import time
from collections.abc import Iterable

from leadline._dataclass import dataclass
from leadline.analysis.ranks import RankView, rank_label
from leadline.analysis.stragglers import Straggler, imbalance
from leadline.profiles import Profile
from leadline.report.source import visible
from leadline.units import duration


@dataclass(frozen=True)
class Late:
    """A rank or machine that was late for a while, for one cause. `excess_ns`: per step, at its worst."""

    who: str
    cause: str
    start_ns: int
    end_ns: int
    stretches: int
    excess_ns: float


def lateness(stretches: Iterable[tuple[int, int, Profile]]) -> tuple[list[Late], int]:
    """In the order in which they began, and how many stretches were looked at."""
    found: list[Late] = []
    running: dict[tuple[str, str], Late] = {}
    looked = 0
    for start_ns, end_ns, profile in stretches:
        looked += 1
        view = RankView(profile)
        now: dict[tuple[str, str], Late] = {}
        for one in imbalance(view).stragglers:
            key = _who(view, one), one.cause
            before = running.get(key)
            if before is None:
                now[key] = Late(*key, start_ns, end_ns, 1, one.excess_ns)
            else:
                worst = max(before.excess_ns, one.excess_ns)
                now[key] = Late(*key, before.start_ns, end_ns, before.stretches + 1, worst)
        found += [late for key, late in running.items() if key not in now]
        running = now
    return sorted([*found, *running.values()], key=lambda late: (late.start_ns, late.who)), looked


def lateness_text(late: list[Late], looked: int) -> str:
    """A line for each; ends without a newline."""
    if not late:
        return f"No rank was late in any of {looked} intervals that have files."
    lines = [
        f"{_clock(one.start_ns)} to {_clock(one.end_ns)} UTC  {one.who}: {one.cause}, {duration(int(one.excess_ns))} "
        f"a step more than its peers ({one.stretches} of {looked} intervals)"
        for one in late
    ]
    return "\n".join(visible(line) for line in lines)


def _who(view: RankView, one: Straggler) -> str:
    if one.host:
        return f"machine {one.host}"
    return ", ".join(rank_label(view.ranks[row]) for row in one.ranks)


def _clock(ns: int) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.gmtime(ns / 1e9))
