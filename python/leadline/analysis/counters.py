"""Counters of the kernel and the processor (`leadline run --counter NAME`): what was counted, and on which lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis import Analysis
from leadline.analysis.columns import Mask
from leadline.profiles import Tree
from leadline.schema import METRICS, MetricInfo

_MARK = "counter: "
COUNTERS: tuple[MetricInfo, ...] = tuple(info for info in METRICS if info.doc.startswith(_MARK))
_MOST_LINES = 3


@dataclass(frozen=True)
class Line:
    """`row`: a node whose user line it is; `count`: all that was counted on that line."""

    row: int
    count: int


@dataclass(frozen=True)
class Counted:
    """One counter, by the name that perf gives it or that it was asked for by: its sum, and the user's lines with most
    of it."""

    name: str
    metric: str
    total: int
    lines: tuple[Line, ...]


def counted(analysis: Analysis, kept: Mask) -> list[Counted]:
    """Of every counter that this profile has, in the order of the schema."""
    measured = {info.kind for info in analysis.tree.measured}
    asked = _asked_names(analysis.profile.meta)
    return [
        Counted(
            asked.get(str(info.kind), str(info.kind).replace("_", "-")),
            str(info.kind),
            int(analysis.exclusive(str(info.kind))[kept].sum()),
            _lines(analysis, info, kept),
        )
        for info in COUNTERS
        if info.kind in measured
    ]


def _asked_names(meta: Mapping[str, Any]) -> dict[str, str]:
    """By metric the name of the event that it counts, where it was asked for by one."""
    available = meta.get("available")
    told = available.get("cpu") if isinstance(available, Mapping) else None
    names = told.get("named_counters") if isinstance(told, Mapping) else None
    pairs = (one.partition("=") for one in names.split()) if isinstance(names, str) else ()
    return {metric: name for metric, _, name in pairs}


def _lines(analysis: Analysis, info: MetricInfo, kept: Mask) -> tuple[Line, ...]:
    tree: Tree = analysis.tree
    user = analysis.scopes.user
    values = np.where(kept & (user >= 0), analysis.exclusive(str(info.kind)), 0)
    rows = np.flatnonzero(values)
    if not len(rows):
        return ()
    frames = tree.frames
    keys = np.stack([frames[name][tree.frame_of[user[rows]]].astype(np.int64) for name in ("file", "line", "name")])
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    sums = np.bincount(group.ravel(), weights=values[rows].astype(np.float64))
    order = np.argsort(-sums, kind="stable")[:_MOST_LINES]
    return tuple(Line(int(rows[first[one]]), int(sums[one])) for one in order.tolist())
