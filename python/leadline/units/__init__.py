"""Quantities as people read them: durations, sizes, counts, shares and changes, always with their unit, never NaN.

Every text that a person reads has its figures from here; `ui/model/units.ts` is the same for the page. Both are held to
`tests/ui/rules.json`, so a figure reads the same wherever it stands. Halves round away from zero, as in JavaScript.
"""

from __future__ import annotations

import math

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_COUNT_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


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
    return f"{_fixed(nanoseconds, 0)} ns"


def size(byte_count: float) -> str:
    """`1.50 GiB`: three significant digits, binary units."""
    if not math.isfinite(byte_count):
        return "n/a"
    if byte_count < 0:
        return "-" + size(-byte_count)
    for scale, unit in _SIZE_STEPS:
        if byte_count >= scale * 0.9995:
            return f"{_three_digits(byte_count / scale)} {unit}"
    return f"{_fixed(byte_count, 0)} B"


def number(value: float) -> str:
    """`12,345`, or three digits where the value is not whole."""
    if not math.isfinite(value):
        return "n/a"
    if value == int(value):
        return f"{int(value):,}"
    return _three_digits(value)


def abbreviated(count: float) -> str:
    """`25.6 M`: a large number in three digits."""
    for scale, unit in _COUNT_STEPS:
        if count >= scale:
            return f"{_three_digits(count / scale)} {unit}"
    return number(round(count))


def times(count: float) -> str:
    """`40`, or `2.5` where a mean count is not near a whole number."""
    return _fixed(count, 0) if count >= 10 or abs(count - round(count)) < 0.05 else _fixed(count, 1)


def how_often(count: float) -> str:
    """`once`, `40 times`."""
    return "once" if times(count) == "1" else f"{times(count)} times"


def percent(fraction: float) -> str:
    """`12 %`, `4.2 %`, `98.7 %`: two significant digits of the share or of what is missing to the whole.

    `<0.1 %` where something is there but would print as zero, `>99.9 %` where something is missing.
    """
    if not math.isfinite(fraction):
        return "n/a"
    if fraction < 0:
        return "-" + percent(-fraction)
    value = 100.0 * fraction
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    fine = 0 < value < 9.95 or 90.05 < value < 100
    return f"{_fixed(value, 1 if fine else 0)} %"


def share(part: float, whole: float) -> str:
    """`percent` of a part of a whole; `n/a` where the whole is zero."""
    return percent(part / whole) if whole and math.isfinite(part) and math.isfinite(whole) else "n/a"


def change(fraction: float) -> str:
    """`+1.8 %`, `-28.3 %`: how much more (0.018) or less (-0.283) than before."""
    if not math.isfinite(fraction):
        return "n/a"
    value = abs(100.0 * fraction)
    text = _fixed(value, 1 if value < 99.95 else 0)
    sign = "" if float(text.replace(",", "")) == 0 else "-" if fraction < 0 else "+"
    return f"{sign}{text} %"


def in_unit(value: float, unit: str) -> str:
    """`value` in the unit of the schema (`ns`, `bytes`, `1`, `1e-3`, `1e-6`)."""
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return size(value)
    if unit in ("1e-3", "1e-6"):
        return number(value * float(unit))
    return number(value)


def _clock(nanoseconds: float) -> str:
    seconds = math.floor(nanoseconds / 1e9 + 0.5)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    minutes = math.floor(nanoseconds / 60e9 + 0.5)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _three_digits(value: float) -> str:
    return _fixed(value, 0 if value >= 99.95 else 1 if value >= 9.995 else 2)


def _fixed(value: float, digits: int) -> str:
    """With thousands separated; the same arithmetic as in units.ts, so that both round alike."""
    scale = 10**digits
    return f"{math.floor(value * scale + 0.5) / scale:,.{digits}f}"


def counted(count: int, what: str) -> str:
    """`1 step`, `1,250 steps`: a number with its noun, whose plural ends in s."""
    return f"{count:,} {what}{'s' * (count != 1)}"
