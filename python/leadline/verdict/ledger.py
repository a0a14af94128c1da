"""What is booked of a step while its account is made: time by part, with the nodes that it was measured at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.case import Case
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.loop import Loop
from leadline.profiles import Thread
from leadline.verdict.contention import Contention, contention

LABELS = {
    "products": "matrix products and convolutions",
    "moves": "moving data (element-wise, copies, layout, normalisation)",
    "random": "random numbers",
    "optimizer": "the optimizer",
    "autograd": "autograd's bookkeeping",
    "calling": "calling operators (dispatch, modules, torch's own Python)",
    "python": "Python",
    "collection": "garbage collection",
    "saving": "saving files",
    "rare": "work of some steps only (evaluation, checkpoints, logging)",
    "compile": "compiling",
    "data": "waiting for data",
    "device": "waiting for the device",
    "ranks": "communication with other ranks",
    "core": "waiting for a core",
    "lock": "waiting for a lock or the interpreter",
    "io": "waiting for files or pipes",
    "network": "waiting for the network",
    "child": "waiting for a child process",
    "kernel": "waiting inside a system call",
    "sleep": "sleeping",
    "brief": "off a core, in waits too short to be seen",
    "pool": "operations on the framework's own threads",
    "unexplained": "unexplained",
}
WAITS = frozenset(
    ("data", "device", "ranks", "core", "lock", "io", "network", "child", "kernel", "sleep", "brief", "pool")
)


@dataclass
class Draft:
    """Sums of a part while the account is made: `rows` and `values` say where."""

    ns: float = 0.0
    known: str = "measured"
    sure_ns: float = 0.0
    rows: list[Rows] = field(default_factory=list)
    values: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, rows: Rows, values: NDArray[np.float64]) -> None:
        self.ns += float(values.sum())
        self.rows.append(rows)
        self.values.append(values)


class Ledger:
    """Books time of one thread's steps in parts, never more than the step has."""

    def __init__(self, case: Case, loop: Loop, thread: Thread | None) -> None:
        self.case, self.loop = case, loop
        self.thread = thread
        self.drafts: dict[str, Draft] = {}
        self.tree = case.tree
        scopes = case.analysis.scopes
        thread_s = scopes.thread == scopes.thread[loop.anchors[0]]
        self.rare: Mask = thread_s & case.below(case.rare_lines)
        """What only some steps do, with all that it calls; not in `mine`."""
        self.mine: Mask = loop.inside & thread_s & ~self.rare
        self.contention: Contention = contention(case.profile, thread, loop.of.main)
        self.queued_loading = 0.0
        self.loading_ran = 0.0
        """Of loading, what ran in this thread, a step."""

    def book(self, key: str, where: Mask, values: NDArray[np.float64], known: str = "measured") -> float:
        """`values`: ns over all steps per node."""
        rows = np.flatnonzero(where & (values > 0))
        if not len(rows):
            return 0.0
        draft = self.drafts.setdefault(key, Draft(known=known))
        if draft.known != known:
            draft.known = "estimated"
        of_step = values[rows] / self.loop.steps
        draft.add(rows, of_step)
        return float(of_step.sum())

    def fill(self, key: str, ns: float, known: str) -> None:
        """Time of one step that has no place in the tree."""
        if ns > 0:
            draft = self.drafts.setdefault(key, Draft(known=known))
            draft.ns += ns

    @property
    def booked(self) -> float:
        return sum(one.ns for one in self.drafts.values())

    def shrink(self, factor: float, keys: Iterable[str]) -> None:
        for key in keys:
            draft = self.drafts[key]
            draft.ns *= factor
            draft.values = [values * factor for values in draft.values]
