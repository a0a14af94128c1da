"""Counters of the kernel and the processor (`leadline run --counter NAME`): what was counted, and on which lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """One counter: its sum, and the user's lines with most of it."""

    metric: str
    total: int
    lines: tuple[Line, ...]


def counted(analysis: Analysis, kept: Mask) -> list[Counted]:
    """Of every counter that this profile has, in the order of the schema."""
    measured = {info.kind for info in analysis.tree.measured}
    return [
        Counted(str(info.kind), int(analysis.exclusive(str(info.kind))[kept].sum()), _lines(analysis, info, kept))
        for info in COUNTERS
        if info.kind in measured
    ]


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
