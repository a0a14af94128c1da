"""The tree turned over: at the top the frames that spent a metric themselves, below each its callers, down to the root.

Lazy and exact: a view keeps the rows that spent the metric and, for each, the row reached on its way up, so recursion
is counted once and children are grouped only when asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.measures import Stat
from leadline.schema import FrameKind, MetricKind

if TYPE_CHECKING:
    from leadline.profiles.tree import Node, Tree


@dataclass(frozen=True)
class BottomUp:
    """One frame of the turned tree. `spent`: rows that measured the metric; `at`: for each, the row of this frame above
    it."""

    tree: Tree
    metric: MetricKind
    spent: NDArray[np.int64]
    at: NDArray[np.int64]
    parent: BottomUp | None = None

    @staticmethod
    def of(tree: Tree, metric: MetricKind, kind: FrameKind | None) -> BottomUp:
        """The top: no frame of its own, `children` are the frames that spent the metric, the most expensive first."""
        rows = np.flatnonzero(tree.exclusive(metric).count)
        if kind is not None:
            rows = rows[tree.kinds[rows] == int(kind)]
        return BottomUp(tree, metric, rows, rows)

    @property
    def is_top(self) -> bool:
        return self.parent is None

    @property
    def node(self) -> Node:
        """A node that stands for this frame (the first of them); the root at the top."""
        return self.tree.node(int(self.at[0]) if len(self.at) and not self.is_top else 0)

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def file(self) -> str:
        return self.node.file

    @property
    def line(self) -> int:
        return self.node.line

    @cached_property
    def stat(self) -> Stat:
        """What the frame at the top of this branch measured itself when called through the path down to here."""
        return self.tree.exclusive(self.metric).total(self.spent)

    def path(self) -> list[BottomUp]:
        """From the spending frame to this caller; the top is not part of it."""
        steps: list[BottomUp] = []
        step: BottomUp | None = self
        while step is not None and not step.is_top:
            steps.append(step)
            step = step.parent
        return steps[::-1]

    @cached_property
    def children(self) -> list[BottomUp]:
        """Callers (at the top: spending frames), by sum, the largest first; ties in row order."""
        spent, above = self.spent, self.at
        if not self.is_top:
            above = self.tree.parent[self.at].astype(np.int64)
            spent, above = spent[above > 0], above[above > 0]  # the root calls nobody and is not shown
        if not len(spent):
            return []
        frame = self.tree.frame_of[above]
        order = np.argsort(frame, kind="stable")
        spent, above, frame = spent[order], above[order], frame[order]
        bounds = np.flatnonzero(frame[1:] != frame[:-1]) + 1
        groups = zip(np.split(spent, bounds), np.split(above, bounds), strict=True)
        views = [BottomUp(self.tree, self.metric, one, reached, self) for one, reached in groups]
        return sorted(views, key=lambda view: (-view.stat.sum, int(view.at[0])))
