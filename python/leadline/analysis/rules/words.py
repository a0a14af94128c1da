"""Words that rules share: numbers as a sentence needs them."""

from __future__ import annotations

import re

from leadline.analysis.case import Case
from leadline.analysis.columns import Rows
from leadline.analysis.functions import METRIC
from leadline.analysis.layers import merged_layers

_ENGINE = "autograd::engine::evaluate_function: "


def percent(share: float) -> str:
    """`12 %`, below ten with one digit."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def duration(ns: float) -> str:
    """`1.2 ms`: two or three digits."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= scale:
            value = ns / scale
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """`12.3 MiB`."""
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


def times(count: float) -> str:
    """`40`, or `2.5` where it is not near a whole number."""
    return f"{count:,.0f}" if count >= 10 or abs(count - round(count)) < 0.05 else f"{count:.1f}"


def often_as(count: float) -> str:
    """`once`, `40 times`."""
    return "once" if times(count) == "1" else f"{times(count)} times"


def number(count: float) -> str:
    """`25.6 M`: a large number in two or three digits."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f}"


def kernel(name: str, most: int = 100) -> str:
    """`kernel NAME`; of C++ templates the beginning, which tells them apart."""
    return f"kernel {name}" if len(name) <= most else f"kernel {name[:most]}…"


def operator(name: str) -> str:
    """`AddmmBackward0` without the name of autograd's engine."""
    return name.removeprefix(_ENGINE)


def module(name: str) -> str:
    """`transformer.h.*.attn`."""
    return merged_layers(name)


def listed(words: list[str], most: int = 4) -> str:
    """`a, b and c`."""
    shown = words[:most] + ([f"{len(words) - most} more"] if len(words) > most else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}" if shown else ""


def sureness(case: Case, rows: Rows) -> str:
    """How far to trust a share by samples: right within about two standard deviations of a share of so many."""
    number = int(case.tree.exclusive(METRIC).count[rows].sum())
    of = int(case.tree.exclusive(METRIC).count[case.loop.inside].sum())
    share = number / max(of, 1)
    off = 2 * (share * (1 - share) / max(of, 1)) ** 0.5
    return f"{number:,} of {of:,} samples: give or take {percent(off)} of the step"


def plain(text: str) -> str:
    """Text on one line without control characters."""
    return re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "?", text)
