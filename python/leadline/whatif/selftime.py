"""Whose time a gap is: the operator that goes on after what it called.

A task lasts until the first span inside it, so an operator that calls a trivial one before its real work (addmm calls
resolve_conj first) has that work in the gap behind the callee. A gap belongs to the span that goes on longest in it,
`gap_level` spans up from the task before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, Selection, TaskKind
from leadline.whatif.tables import PYTHON as PYTHON


class SelfTimes:
    """Own times of CPU tasks; parallel arrays `holder` (task with a gap) and `owner` (task whose time the gap is)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        kind, gap, parent = graph.column("kind"), graph.column("gap_ns"), graph.column("parent")
        on_cpu = graph.alive & ((kind == TaskKind.CPU) | (kind == TaskKind.DATA))
        self.holder: IntArray = np.flatnonzero(on_cpu & (gap > 0))
        self.owner: IntArray = self.holder
        level = graph.column("gap_level")[self.holder]
        for depth in range(1, int(level.max(initial=0)) + 1):
            above = parent[self.owner]
            self.owner = np.where((level >= depth) & (above >= 0) & on_cpu[above], above, self.owner)

    def total_ns(self) -> IntArray:
        """Own time of every task: its duration and the gaps that are its own; by task id."""
        total: IntArray = self.graph.column("duration_ns").copy()
        np.add.at(total, self.owner, self.graph.column("gap_ns")[self.holder])
        return total

    def scale(self, tasks: Selection, factor: float | NDArray[np.float64]) -> None:
        """Multiply the own time of tasks by one factor, or by one per task in id order."""
        factors = np.ones(len(self.graph))
        factors[tasks.ids] = factor
        self.graph.scale(tasks, factors[tasks.ids])
        mine = self.holder[factors[self.owner] != 1.0]
        if mine.size:
            by_owner = factors[self.owner[factors[self.owner] != 1.0]]
            self.graph.set_gap(mine, np.rint(self.graph.column("gap_ns")[mine] * by_owner).astype(np.int64))
