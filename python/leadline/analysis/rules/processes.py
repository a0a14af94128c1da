"""What rules ask about processes: workers that work at once, cores. No rule of its own."""

from __future__ import annotations

from leadline.analysis.case import Case
from leadline.profiles import Process


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
    marks = sorted(mark for one in started(case) for mark in ((one.start_ns, 1), (max(one.end_ns, one.start_ns), -1)))
    alive_ns: dict[int, int] = {}
    alive = before = 0
    for at, change in marks:
        alive_ns[alive] = alive_ns.get(alive, 0) + at - before
        before, alive = at, alive + change
    alive_ns.pop(0, None)
    most, wanted, seen = 0, _USUAL * sum(alive_ns.values()), 0
    for number in sorted(alive_ns, reverse=True):
        seen += alive_ns[number]
        if seen >= wanted:
            most = number
            break
    return most
