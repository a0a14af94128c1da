"""By how much a program is slower for being measured."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

from leadline._dataclass import dataclass
from leadline._own_cost import slower_by, with_beside_ns
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import FrameKind

_NARROW = 0.25
_LEAST = 0.4
"""Of a run that steps take: with less of it, much of what measuring costs is not in them."""
_CLOSE = 0.02
"""A comparison tells where its interval is as narrow as this: of the overhead, or of a step."""


@dataclass(frozen=True)
class Overhead:
    """`share`: time added, of the time without measuring; of the steps, where they were timed. `measured`: by steps
    that were left out (`--duty`); else it
    is estimated from the time that calls took."""

    share: float
    measured: bool


def overhead(profile: Profile) -> Overhead | None:
    """None where the file does not say."""
    found = [one for record in profile.meta.get("processes") or () if (one := _compared(record)) is not None]
    if found:
        return Overhead(max(found), measured=True)
    share = _stated(profile)
    return Overhead(slower_by(share), measured=False) if share is not None else None


def _stated(profile: Profile) -> float | None:
    """What measuring took of the run's time: in our calls, and beside them. None where the file does not say."""
    cost, asked = profile.meta.get("cost"), profile.meta.get("asked")
    inside = cost.get("percent") if isinstance(cost, dict) else None
    if not isinstance(cost, dict) or not _is_number(inside):
        return None
    calls_ns, events = cost.get("callbacks_ns"), cost.get("events")
    if not _is_number(calls_ns) or not _is_number(events) or calls_ns <= 0:
        return float(inside) / 100
    shapes = isinstance(asked, dict) and asked.get("shapes") is True
    of_run = float(inside) / 100 * with_beside_ns(calls_ns, events, shapes) / calls_ns
    return of_run / max(_part_in_steps(profile), _LEAST)


def _part_in_steps(profile: Profile) -> float:
    """Of the time of all processes, what is in their steps; those without steps count as a whole."""
    tree = profile.tree
    steps: dict[int, int] = {}
    timed = tree.exclusive("call_time").sum
    for row in np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "step")[tree.frame_of] & (timed > 0)).tolist():
        process = next((at for at in tree.path_rows(row) if tree.kinds[at] == int(FrameKind.PROCESS)), -1)
        steps[process] = steps.get(process, 0) + int(timed[row])
    records = profile.meta.get("processes")
    walls = [one.get("wall_ns") if isinstance(one, dict) else 0 for one in records] if isinstance(records, list) else []
    every = sum(int(wall) for wall in walls if _is_number(wall))
    longest = max((int(wall) for wall in walls if _is_number(wall)), default=0)
    if not steps or every <= 0:
        return 1.0
    outside = sum(max(longest - ns, 0) for ns in steps.values())
    return 1 - min(outside / every, 1.0)


def stated_in(tables: Tables) -> dict[str, Any]:
    """`cost` and `wall_ns` of a process that has not ended, for its record, from its segment; empty where that does not
    say."""
    if not tables.rows("own_cost") or not tables.rows("processes"):
        return {}
    span = tables["processes"]["end_ns"] - tables["processes"]["start_ns"]
    cost = {name: int(values[0]) for name, values in tables["own_cost"].items()}
    return {"cost": cost, "wall_ns": int(span[0])}


def _compared(record: Any) -> float | None:
    """Of a process of which steps were left out; None where too few were to tell."""
    duty = record.get("duty") if isinstance(record, dict) else None
    told = duty.get("slowdown") if isinstance(duty, dict) else None
    if not isinstance(told, dict) or not all(_is_number(told.get(name)) for name in ("ratio", "low", "high")):
        return None
    added = max(float(told["ratio"]) - 1, 0.0)
    half = (told["high"] - told["low"]) / 2
    return added if 0 <= half <= max(_NARROW * added, _CLOSE) else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
