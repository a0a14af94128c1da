"""Numbers as people read them: durations, sizes, counts and shares, always with their unit, never NaN."""

from __future__ import annotations

import math

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def duration(nanoseconds: float) -> str:
    """`12.3 ms`: three significant digits; minutes and hours above two minutes."""
    if not math.isfinite(nanoseconds):
        return "n/a"
    if nanoseconds < 0:
        return "-" + duration(-nanoseconds)
    if nanoseconds >= 120e9:
        return _clock(nanoseconds)
    for scale, unit in _TIME_STEPS:
        if nanoseconds >= scale * 0.9995:
            return f"{_three_digits(nanoseconds / scale)} {unit}"
    return f"{nanoseconds:.0f} ns"


def _clock(nanoseconds: float) -> str:
    seconds = round(nanoseconds / 1e9)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    minutes = round(nanoseconds / 60e9)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(byte_count: float) -> str:
    """`1.50 GiB`: three significant digits, binary units."""
    if not math.isfinite(byte_count):
        return "n/a"
    if byte_count < 0:
        return "-" + size(-byte_count)
    for scale, unit in _SIZE_STEPS:
        if byte_count >= scale * 0.9995:
            return f"{_three_digits(byte_count / scale)} {unit}"
    return f"{byte_count:.0f} B"


def number(value: float) -> str:
    """`12,345`, or three digits where the value is not whole."""
    if not math.isfinite(value):
        return "n/a"
    if value == int(value):
        return f"{int(value):,}"
    return _three_digits(value)


def share(part: float, whole: float) -> str:
    """`12.3%`; `n/a` where the whole is zero, `<0.1%` where something is there but would print as zero."""
    if not whole or not math.isfinite(part) or not math.isfinite(whole):
        return "n/a"
    percent = 100.0 * part / whole
    if 0 < percent < 0.05:
        return "<0.1%"
    return f"{percent:.1f}%"


def in_unit(value: float, unit: str) -> str:
    """`value` in the unit of the schema (`ns`, `bytes`, `1`, `1e-3`, `1e-6`)."""
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return size(value)
    if unit in ("1e-3", "1e-6"):
        return number(value * float(unit))
    return number(value)


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
