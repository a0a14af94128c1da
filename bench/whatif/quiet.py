"""How much CPU time others took from what was measured, from the kernel's own accounts.

Others took at most what they used, and at most what our threads waited for a core: loader workers that wait for one
another are no disturbance, nor is a process on a core that we leave idle. What others do to caches is not seen.
The resolution is a clock tick (10 ms) per process, so an answer for less than a tenth of a second means little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Account:
    """Seconds since some time in the past."""

    wall: float
    everybody: float
    ours: float
    waited: float


def watched(work: Callable[[], _T]) -> tuple[_T, float]:
    """Do some work; its result and the share of the time that others took from it."""
    before = _account()
    result = work()
    after = _account()
    theirs = (after.everybody - before.everybody) - (after.ours - before.ours)
    lost = max(0.0, min(theirs, after.waited - before.waited))
    return result, lost / (after.wall - before.wall)


def undisturbed(work: Callable[[], _T], limit: float, tries: int) -> tuple[_T, float]:
    """The result of the first try from which others took at most `limit` of its time, else of the least disturbed one;
    and that share."""
    best = watched(work)
    for _ in range(tries - 1):
        if best[1] <= limit:
            break
        best = min(best, watched(work), key=lambda found: found[1])
    return best


def _account() -> _Account:
    """Everybody: what all cores together did not idle. Ours: this process and everything below it."""
    fields = [int(text) for text in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
    everybody = (sum(fields[:8]) - fields[3] - fields[4]) * _TICK_S
    spent: dict[int, float] = {}
    above: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        above[int(folder.name)] = int(stat[1])
        spent[int(folder.name)] = sum(int(field) for field in stat[11:15]) * _TICK_S
    family = {os.getpid()}
    grown = True
    while grown:
        found = {pid for pid, parent in above.items() if parent in family} | family
        grown, family = len(found) > len(family), found
    ours = sum(spent.get(pid, 0.0) for pid in family)
    return _Account(time.perf_counter(), everybody, ours, sum(_waited_s(pid) for pid in family))


def _waited_s(process: int) -> float:
    """Time that the threads of a process stood ready without a core; 0 where the kernel does not say."""
    total = 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            continue  # the thread ended meanwhile
    return total / 1e9
