"""Sizes as people write and read them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9.]+)\s*(B|[KMGT]i?B|)")
_FACTORS = {"": 1, "B": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_STEPS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def parse_bytes(text: str) -> int:
    """A size such as 64KiB, 2MB or 4096; raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size; write one such as 64KiB or 2MB")
    unit = found[2]
    factor = 1024 ** " KMGT".index(unit[0]) if unit.endswith("iB") else _FACTORS[unit[:1]]
    return int(float(found[1]) * factor)


def size_text(value: float) -> str:
    """Such as 2.5 MiB."""
    for scale, unit in _STEPS:
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"
