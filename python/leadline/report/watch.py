"""The ranks of a running job as a table, from what each has written last."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.analysis.ranks import RankView, rank_label
from leadline.profiles import Profile
from leadline.profiles.fold.state import PARTIAL, Rank
from leadline.report.ranks import Ranks, ranks_of
from leadline.report.ranks_text import verdicts
from leadline.report.source import visible
from leadline.units import duration, number, share

SILENT_NS = 90_000_000_000
"""Three times the interval at which ranks write by default."""
_MOST_ROWS = 64


@dataclass(frozen=True)
class JobReading:
    """One look at a job. `at_ns`: CLOCK_REALTIME."""

    at_ns: int
    view: RankView
    ranks: Ranks

    @classmethod
    def at(cls, profile: Profile, now_ns: int) -> JobReading:
        found = ranks_of(profile)
        if found is None:
            raise ValueError("only folded profiles have ranks")
        return cls(now_ns, RankView(profile), found)


def watch_text(now: JobReading, before: JobReading | None) -> str:
    """Rows by what deserves a look first: silent ranks, then by number."""
    view = now.view
    lines = [f"{'rank':<24}{'written':>12}{'steps':>9}{'a step':>11}{'waits':>8}{'collectives':>13}  state"]
    old = {} if before is None else {rank.identity: rank for rank in before.view.ranks}
    order = sorted(range(len(view.ranks)), key=lambda row: (not _silent(view.ranks[row], now.at_ns), row))
    for row in order[:_MOST_ROWS]:
        rank = view.ranks[row]
        lines.append(_row(rank, old.get(rank.identity), now.at_ns))
    if len(order) > _MOST_ROWS:
        lines.append(f"{number(len(order) - _MOST_ROWS)} more ranks")
    if now.ranks.missing:
        lines.append(f"nothing yet from ranks {now.ranks.missing}")
    silent = [rank_label(rank) for rank in view.ranks if _silent(rank, now.at_ns)]
    if silent:
        lines.append(f"silent: {', '.join(silent[:8])}{' and others' if len(silent) > 8 else ''}")
    lines += verdicts(now.ranks)
    return "\n".join(visible(line) for line in lines)


def _row(rank: Rank, before: Rank | None, now_ns: int) -> str:
    time_ns, steps = rank.values.get("steps", (0, 0))
    was_ns, was = before.values.get("steps", (0, 0)) if before is not None else (0, 0)
    if steps > was:  # since the last look
        step = duration((time_ns - was_ns) / (steps - was))
    else:
        step = duration(time_ns / steps) if steps else "n/a"
    wall = rank.values.get("wall", (0, 0))[0]
    waits = share(rank.values.get("communication", (0, 0))[0], wall) if wall else "n/a"
    age = duration(max(now_ns - rank.end_ns, 0)) + " ago"
    state = "silent" if _silent(rank, now_ns) else "running" if rank.status == PARTIAL else "ended"
    who = f"{rank_label(rank)} {rank.host}"
    begun = number(rank.values.get("collectives", (0, 0))[1])
    return f"{who[:23]:<24}{age:>12}{number(rank.steps_ended):>9}{step:>11}{waits:>8}{begun:>13}  {state}"


def _silent(rank: Rank, now_ns: int) -> bool:
    return rank.status == PARTIAL and now_ns - rank.end_ns > SILENT_NS
