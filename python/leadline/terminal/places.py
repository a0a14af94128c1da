"""What each line of a source file cost: on itself, and with all that it called. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leadline.analysis import Analysis
from leadline.analysis.breakdown import outermost_of_name
from leadline.analysis.columns import Mask, Rows, at_rows, distinct, group_sums, nearest
from leadline.profiles import Tree
from leadline.profiles.rollup import Shape
from leadline.schema import FrameKind


@dataclass(frozen=True)
class LineCost:
    """In the metric's unit. `booked`: what the line is answerable for: all measured below it before another line of the
    user's; `total`: with all below; `node`: the call path that has most of it."""

    booked: int
    total: int
    node: int


def line_costs(analysis: Analysis, file: str, metric: str) -> Mapping[int, LineCost]:
    """By line of `file`; lines that measured nothing are absent."""
    tree = analysis.tree
    here = _frames_of(tree, file)[tree.frame_of]
    rows = np.flatnonzero(here)
    if not len(rows):
        return {}
    line_of = tree.frames["line"][tree.frame_of].astype(np.int64)
    lines, group = distinct(line_of[rows])
    whole = np.maximum(tree.inclusive(metric).sum, 0)
    place = np.full(len(tree), -1, np.int64)
    place[rows] = np.arange(1, len(rows) + 1)
    above = nearest(tree.shape, here)[np.maximum(tree.shape.parent[rows], 0)]
    shape = Shape(np.concatenate(([-1], np.maximum(at_rows(place, above), 0))))
    outermost = outermost_of_name(shape, group)
    totals = group_sums(np.where(outermost, group, -1), whole[rows], len(lines))
    booked = _booked(analysis, here, line_of, lines, metric)
    order = np.lexsort((whole[rows], group))
    last = np.append(np.flatnonzero(np.diff(group[order])), len(order) - 1)
    most = rows[order[last]]
    return {
        int(lines[i]): LineCost(int(booked[i]), int(totals[i]), int(most[i]))
        for i in range(len(lines))
        if totals[i] or booked[i]
    }


def _booked(analysis: Analysis, here: Mask, line_of: Rows, lines: Rows, metric: str) -> Rows:
    own = np.maximum(analysis.exclusive(metric), 0)
    user = analysis.scopes.user
    answer = np.where((user >= 0) & at_rows(here, user, 0).astype(np.bool_), user, -1)
    group = np.where(answer >= 0, np.searchsorted(lines, line_of[np.maximum(answer, 0)]), -1)
    return group_sums(group, own, len(lines))


def _frames_of(tree: Tree, file: str) -> Mask:
    python = tree.frames["kind"] == int(FrameKind.PYTHON)
    mask: Mask = python & np.isin(tree.frames["file"], tree.tables.strings.rows_equal(file))
    return mask
