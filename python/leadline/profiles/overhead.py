"""By how much a program is slower for being measured."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from leadline._dataclass import dataclass
from leadline._own_cost import beside_ns, slower_by
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables

_NARROW = 0.25
_CLOSE = 0.02
"""A comparison tells where its interval is as narrow as this: of the overhead, or of a step."""


@dataclass(frozen=True)
class Overhead:
    """`share`: time added, of the time without measuring. `measured`: by steps that were left out (`--duty`); else it
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
    return float(inside) / 100 * (1 + beside_ns(shapes) * events / calls_ns)


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
