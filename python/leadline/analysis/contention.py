"""How much of its time a thread had a core: in operators, in loading, on the whole, and what kept it from one."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles import Profile, Thread
from leadline.schema import FrameKind
from leadline.steps.model import RankSteps

DISPATCH_NS = 2_000.0
"""What an operator takes without work, were it not called from Python: calling is at least so much of its own time."""
_ENOUGH_NS = 200_000_000
"""On a core: of less the share in line is an accident."""


@dataclass(frozen=True)
class Contention:
    """Shares 0 to 1 of wall time in which the thread ran. `queue`: how that is known, and the time in line for a core
    for each nanosecond on one."""

    operators_ran: float
    loading_ran: float
    python_ran: float
    ran: float | None
    queue: tuple[str, float]


def contention(profile: Profile, thread: Thread | None, steps: RankSteps | None = None) -> Contention:
    """Of one thread; 1 everywhere where nothing was measured. `steps`: those that it runs, if it does."""
    if thread is None:
        return Contention(1.0, 1.0, 1.0, None, ("estimated", 0.0))
    tree = profile.tree
    row = thread.node.row
    measured = tree.exclusive("operator_running_time")
    operators = 1.0
    if measured.count[row] > 0 and thread.operator_ns > 0:
        operators = min(1.0, max(0.01, int(measured.sum[row]) / thread.operator_ns))
    loading = _phase_ran(profile, "data loading")
    whole = thread.cpu_ns / thread.wall_ns if 0 < thread.cpu_ns <= thread.wall_ns else None
    known, ratio = _queue(profile, thread)
    if steps is not None and steps.running_ns > 0 and steps.core_wait_ns >= 0:
        known, ratio = "measured", steps.core_wait_ns / steps.running_ns
    if not known:
        known, ratio = "estimated", (1 / operators - 1 if operators < 0.97 else 0.0)
    python = 1 / (1 + ratio)
    return Contention(operators, loading if loading else 1.0, python, whole, (known, ratio))


def _phase_ran(profile: Profile, name: str) -> float:
    """Of the phases of that name with a measured running time, the share of wall time that they ran; 0: unknown."""
    tree = profile.tree
    rows = tree.frame_rows(FrameKind.PHASE, name)[tree.frame_of]
    running, calls = tree.exclusive("running_time"), tree.exclusive("call_time")
    told = rows & (running.count > 0)
    wall = int(calls.sum[told].sum())
    return float(np.clip(running.sum[told].sum() / wall, 0.01, 1.0)) if wall > 0 else 0.0


def _queue(profile: Profile, thread: Thread) -> tuple[str, float]:
    """From the kernel's own count of time in line (schedstat), where somebody looked: behind the first third of what
    was seen, which is imports and set-up."""
    for record in observed(profile):
        if record.get("tid") != thread.tid:
            continue
        ran, waited = (_numbers(record, name) for name in ("ran_ns", "queued_ns"))
        if len(ran) < 2 or len(ran) != len(waited):
            continue
        first = len(ran) // 3
        on_core = ran[-1] - ran[first]
        if on_core > _ENOUGH_NS:
            return "measured", max(waited[-1] - waited[first], 0) / on_core
    return "", 0.0


def observed(profile: Profile) -> list[dict[str, Any]]:
    """What the supervisor saw of each process (capture/observe.py)."""
    told = profile.meta.get("observed")
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def queued_share(profile: Profile, thread: Thread) -> float:
    """The same over the whole run; -1 where nobody looked."""
    for record in observed(profile):
        ran, waited = (_numbers(record, name) for name in ("ran_ns", "queued_ns"))
        if record.get("tid") == thread.tid and ran and len(ran) == len(waited) and ran[-1] > 0:
            return max(waited[-1], 0) / ran[-1]
    return -1.0


def _numbers(record: dict[str, Any], name: str) -> list[int]:
    found = record.get(name)
    return [int(one) for one in found if isinstance(one, int | float)] if isinstance(found, list) else []
