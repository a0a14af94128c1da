"""By how much a program is slower for being measured."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from leadline._dataclass import dataclass
from leadline._own_cost import slower_by
from leadline.profiles.profile import Profile

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
    cost: Any = profile.meta.get("cost")
    inside = cost.get("percent") if isinstance(cost, dict) else None
    return Overhead(slower_by(inside / 100), measured=False) if _is_number(inside) else None


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
