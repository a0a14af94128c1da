"""Values with units as a user writes them: `25GB/s`, `100Gb/s`, `5us`, `25MB`, `1.5x`, `inf`.

All results are base units: nanoseconds, bytes, bytes per second, plain numbers. A decimal prefix is a power of
1000, `Ki Mi Gi` are powers of 1024; `B` is a byte and `b` a bit.
"""

from __future__ import annotations

import math
import re
from enum import Enum


class Unit(Enum):
    """What a parameter measures."""

    COUNT = "count"
    FACTOR = "factor"
    TIME = "time"
    SIZE = "size"
    BANDWIDTH = "bandwidth"
    TEXT = "text"


class UnitError(ValueError):
    """A value cannot be read in the unit that is needed; the message says how to write it."""


_NUMBER = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)\s*(.*?)\s*$")
_PREFIX = {
    "": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4,
}  # fmt: skip
_TIME_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_EXAMPLE = {
    Unit.COUNT: "16",
    Unit.FACTOR: "2 or 2x",
    Unit.TIME: "5us",
    Unit.SIZE: "25MB",
    Unit.BANDWIDTH: "25GB/s or 200Gb/s",
}


def parse(text: str, unit: Unit, name: str) -> float | str:
    """The value in base units (TEXT unchanged). Raises UnitError in one sentence."""
    if unit is Unit.TEXT:
        return text
    match = _NUMBER.match(text)
    value = None if match is None else _convert(float(match[1]), match[2], unit)
    if value is None or math.isnan(value):
        raise UnitError(f"{name}={text} is not a {unit.value}; write it like {name}={_EXAMPLE[unit].split(' ')[0]}.")
    if value < 0:
        raise UnitError(f"{name}={text} is negative; give a value of at least 0.")
    if unit is Unit.COUNT and math.isfinite(value) and value != int(value):
        raise UnitError(f"{name}={text} is not a whole number; write it like {name}=16.")
    return value


def _convert(number: float, suffix: str, unit: Unit) -> float | None:
    """None when the suffix does not fit the unit."""
    if unit is Unit.COUNT:
        return number if suffix == "" else None
    if unit is Unit.FACTOR:
        if suffix == "%":
            return number / 100
        return number if suffix in ("", "x", "X") else None
    if unit is Unit.TIME:
        return number * _TIME_NS[suffix] if suffix in _TIME_NS else None
    if unit is Unit.BANDWIDTH:
        if not suffix.endswith(("/s", "ps")):
            return None
        suffix = suffix[:-2]
    per_byte = {"B": 1.0, "b": 1 / 8}.get(suffix[-1:])
    prefix = _PREFIX.get(suffix[:-1])
    if per_byte is None or prefix is None:
        return None
    return number * prefix * per_byte
