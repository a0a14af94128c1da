"""The line on which a rank that comes late spends what its peers do not: its own load, never the line that waits."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask
from leadline.analysis.functions import METRIC, imports
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.threads import main_threads
from leadline.analysis.waiting import METRIC as WAIT
from leadline.schema import FrameKind


@dataclass(frozen=True)
class LateLine:
    """`row`: a node with most of the line's time; `excess_ns`: of a step, more than the mean of the other ranks."""

    row: int
    excess_ns: float


def late_line(case: Case, rank: int) -> LateLine | None:
    """None where no line of that rank takes longer than on the others."""
    scopes, tree = case.analysis.scopes, case.tree
    mains = {one.node.row for one in case.profile.threads if one.row in main_threads(case.profile)}
    ranks = {one.node.row: one.rank for one in case.profile.processes if one.rank >= 0}
    mine = _in_the_loop(case) & (scopes.user >= 0) & ~case.below(collectives(case))
    mine &= np.isin(scopes.thread, list(mains))
    rows = np.flatnonzero(mine & np.isin(scopes.process, list(ranks)))
    spent = _spent(case)[rows]
    keep = spent > 0
    rows, spent = rows[keep], spent[keep]
    if not len(rows):
        return None
    frame = tree.frame_of[scopes.user[rows]]
    lines = np.stack([tree.frames[name][frame].astype(np.int64) for name in ("file", "line")])
    _, line = np.unique(lines, axis=1, return_inverse=True)
    line = line.ravel()
    late = np.array([ranks[int(one)] == rank for one in scopes.process[rows].tolist()], np.bool_)
    others = max(len(set(ranks.values())) - 1, 1)
    excess = np.bincount(line, np.where(late, spent, -spent / others))
    most = int(np.argmax(excess))
    if excess[most] <= 0:
        return None
    here = late & (line == most)
    return LateLine(int(rows[here][np.argmax(spent[here])]), float(excess[most]) / case.loop.steps)


def _in_the_loop(case: Case) -> Mask:
    """Nodes of the loop in every rank: below the frame that it begins at in the rank whose steps were counted."""
    root = case.loop.root
    if case.tree.kinds[root] != int(FrameKind.PYTHON):
        return ~imports(case.tree)
    return case.below(case.tree.frame_of == case.tree.frame_of[root])


def _spent(case: Case) -> np.ndarray:
    """Time of operators and phases, and between operators that of samples: running, and waiting."""
    tree = case.tree
    between: Mask = (case.analysis.scopes.inner < 0) & ~case.in_phase("data loading")
    sampled = np.maximum(tree.exclusive(METRIC).sum, 0) + np.maximum(tree.exclusive(WAIT).sum, 0)
    return (np.maximum(tree.exclusive("time").sum, 0) + np.where(between, sampled, 0)).astype(np.float64)
