"""Words that rules share: names and lists as a sentence needs them; figures are of `leadline.units`."""

from __future__ import annotations

import re

from leadline.analysis.case import Case
from leadline.analysis.columns import Rows
from leadline.analysis.functions import METRIC
from leadline.analysis.layers import merged_layers
from leadline.units import percent, times

_ENGINE = "autograd::engine::evaluate_function: "


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


def several(number: float, noun: str) -> str:
    """`1 call`, `2.5 calls`."""
    said = times(number)
    return f"{said} {noun}{'' if said == '1' else 's'}"


def plain(text: str) -> str:
    """Text on one line without control characters."""
    return re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "?", text)
