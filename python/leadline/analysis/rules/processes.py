"""What rules ask about processes: workers that were alive at once, cores. No rule of its own."""

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


def workers(case: Case) -> int:
    """Most child processes of measured ones that were alive at once."""
    children = started(case)
    marks = sorted([(one.start_ns, 1) for one in children] + [(one.end_ns, -1) for one in children])
    most = alive = 0
    for _, change in marks:
        alive += change
        most = max(most, alive)
    return most
