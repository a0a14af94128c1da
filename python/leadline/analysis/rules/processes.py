"""What rules ask about processes: workers that work at once, cores. No rule of its own."""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import Case
from leadline.profiles import Process
from leadline.schema import FrameKind


def cpus(case: Case) -> int:
    """Cores of the machine; 0 where the file does not say."""
    host = case.profile.meta.get("host")
    number = host.get("cpus") if isinstance(host, dict) else 0
    return number if isinstance(number, int) and number > 0 else 0


def started(case: Case) -> list[Process]:
    """Child processes of measured ones; ranks are none."""
    pids = {one.pid for one in case.profile.processes}
    return [one for one in case.profile.processes if one.parent_pid in pids and one.rank < 0]


_USUAL = 0.5
"""Of the time in which any is alive; the workers of one epoch may end while those of the next begin."""


def workers(case: Case) -> int:
    """Child processes of measured ones that were usually alive at once."""
    alive_ns = _alive_ns(case)
    most, wanted, seen = 0, _USUAL * sum(alive_ns.values()), 0
    for number in sorted(alive_ns, reverse=True):
        seen += alive_ns[number]
        if seen >= wanted:
            most = number
            break
    return most


def any_alive_ns(case: Case) -> int:
    """How long any of them was alive; those of one pass over the data may end before the next begins."""
    return sum(_alive_ns(case).values())


def _alive_ns(case: Case) -> dict[int, int]:
    """By how many were alive at once, 1 and more: for how long."""
    marks = sorted(mark for one in started(case) for mark in ((one.start_ns, 1), (max(one.end_ns, one.start_ns), -1)))
    found: dict[int, int] = {}
    alive = before = 0
    for at, change in marks:
        found[alive] = found.get(alive, 0) + at - before
        before, alive = at, alive + change
    found.pop(0, None)
    return found


def loading_at_once(case: Case) -> float:
    """How many child processes made batches at once, on average over the steps. Those that are alive but have nothing
    to do take no core. Where none tells how long it made batches, all that were alive count."""
    children = case.mask([one.node.row for one in started(case)])
    making = case.first_of(case.named(FrameKind.PHASE, "data loading") & case.below(children))
    wall_ns = case.loop.step_ns * case.loop.steps
    if not making.any() or wall_ns <= 0:
        return workers(case)
    return float(np.minimum(case.tree.inclusive("time").sum[making].sum() / wall_ns, workers(case)))
