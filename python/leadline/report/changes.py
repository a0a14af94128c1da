"""What changes would do to a step, or did: a page for what `leadline whatif` predicts or `leadline try` measured.

Plain data with texts that are ready to be read; `ui/views/changes` draws it. Times are nanoseconds of a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leadline._dataclass import asdict, dataclass


@dataclass(frozen=True)
class Bar:
    """A step as it is or would be. `high_ns` 0: no range is known. `gains`: more samples a second than before."""

    name: str
    ns: float
    low_ns: float = 0.0
    high_ns: float = 0.0
    before: bool = False
    gains: bool = False


@dataclass(frozen=True)
class Advice:
    """What to do, what it gains, how sure that is, on what it rests, and the command that asks further."""

    do: str
    gain: str
    sure: str
    more: tuple[str, ...]
    command: str = ""


@dataclass(frozen=True)
class Row:
    """One change. `cells`: under `Changes.heads`; `more`: what stands below it."""

    bar: Bar
    cells: tuple[str, ...]
    verdict: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Rows under a heading; those that gain nothing are `folded`."""

    title: str
    rows: tuple[Row, ...]
    folded: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the step as it is. `sort`: "work", "wait" or "residual"."""

    name: str
    sort: str
    ns: float
    note: str


@dataclass(frozen=True)
class Lane:
    """How busy a lane is, measured and predicted: (first bin, bins, level) of every run."""

    name: str
    kind: str
    before: tuple[tuple[int, int, int], ...]
    after: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Lanes:
    """Lanes on one axis of `bins`; `levels` is as busy as can be."""

    said: str
    bins: int
    levels: int
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class Changes:
    """`sentence`: the answer; `because`: on what it rests; the first of `bars` is the step as it is."""

    title: str
    program: str
    facts: str
    caption: str
    sentence: str
    because: tuple[str, ...]
    bars: tuple[Bar, ...]
    advice: tuple[Advice, ...]
    heads: tuple[str, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """What was not tried, and why."""
    parts: tuple[Part, ...] = ()
    parts_note: str = ""
    lanes: Lanes | None = None


def changes_object(found: Changes) -> dict[str, Any]:
    """As `json.dumps` takes it."""
    made = _finite(asdict(found))
    assert isinstance(made, dict)
    return made


def _finite(value: object) -> object:
    """An infinite time has no length that could be drawn."""
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(one) for one in value]
    return value
