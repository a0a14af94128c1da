"""Lengths of time as people type them: `30s`, `10min`, `1h30min`, `7d`."""

from __future__ import annotations

import re

from leadline.capture.errors import ProfileError

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(s|min|h|d)")


def seconds(text: str, what: str) -> float:
    """Of a length of time; `what` names it in the ProfileError for a text that is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ProfileError(
            f"Cannot read {what} {text!r}; write a number with s, min, h or d, such as 10min or 1h30min."
        )
    found = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not found > 0:
        raise ProfileError(f"{what} must be longer than zero, not {text!r}.")
    return found


def is_duration(text: str) -> bool:
    """Whether this is a length of time and no plain number."""
    return bool(_PART.match(text))
