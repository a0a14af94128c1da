"""What is booked of a step, or of a run, while its account is made: time by part, with the nodes it was measured at."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.contention import Contention, contention, queued_share
from leadline.analysis.functions import METRIC
from leadline.analysis.loop import Loop
from leadline.profiles import Thread
from leadline.schema import FrameKind

LABELS = {
    "products": "matrix products and convolutions",
    "transforms": "Fourier transforms",
    "decompositions": "matrix decompositions and solvers",
    "moves": "moving data (element-wise, copies, layout, normalisation)",
    "random": "random numbers",
    "optimizer": "the optimizer",
    "autograd": "autograd's bookkeeping",
    "calling": "calling operators (dispatch, modules, torch's own Python)",
    "python": "Python",
    "collection": "garbage collection",
    "saving": "saving files",
    "rare": "what does not happen in every step (evaluation, checkpoints, logging)",
    "compile": "compiling",
    "imports": "importing modules",
    "data": "waiting for data",
    "device": "waiting for the device",
    "ranks": "communication with other ranks",
    "core": "waiting for a core",
    "lock": "waiting for a lock or the interpreter",
    "io": "waiting for files or pipes",
    "network": "waiting for the network",
    "child": "waiting for a child process",
    "process": "waiting for the output of another process",
    "kernel": "waiting inside a system call",
    "sleep": "sleeping",
    "brief": "off a core, in waits too short to be seen",
    "pool": "waiting for XLA's own threads to compute",
    "unexplained": "unexplained",
}
WAITS = frozenset(
    ("data", "device", "ranks", "core", "lock", "io", "network", "child", "process", "kernel", "sleep", "brief", "pool")
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


@dataclass(frozen=True)
class Counts:
    """What the kernel counted of a step (of the run): ns that its thread ran, and stood in line for a core; -1 where
    nobody read that."""

    running_ns: float
    core_wait_ns: float


@dataclass(frozen=True)
class Span:
    """What an account is of. `steps`: turns of the loop, 1 for a run; `wall_ns`: of one; `time`: exclusive ns over all
    of them per node; `mine`: the nodes of its thread; `rare`: what only some steps do, with all that it calls, not in
    `mine`; `clocked`: a clock knew the wall time; `counts`: None where the kernel's are not known."""

    steps: int
    wall_ns: float
    time: Rows
    mine: Mask
    rare: Mask
    contention: Contention
    clocked: bool
    counts: Counts | None


_SAME = 0.02
"""Of the step: the counts are of the step that the account is of."""


def span_of_steps(case: Case, loop: Loop, thread: Thread | None) -> Span:
    """One step of the loop, on the thread that sets its length."""
    scopes, main, wall = case.analysis.scopes, loop.of.main, loop.step_ns
    mine = (scopes.thread == scopes.thread[loop.anchors[0]]) & ~case.beside_steps  # once, mostly within the first step
    rare = mine & case.below(case.rare_lines)
    told = main.running_ns >= 0 and main.core_wait_ns >= 0 and main.mean_ns > 0
    told = told and abs(main.mean_ns - wall) <= _SAME * wall
    scale = wall / main.mean_ns if told else 0.0
    counts = Counts(main.running_ns * scale, main.core_wait_ns * scale) if told else None
    found = contention(case.profile, thread, main)
    return Span(loop.steps, wall, loop.time, loop.inside & mine & ~rare, rare, found, bool(loop.measured_by), counts)


def span_of_run(case: Case, thread: Thread) -> Span:
    """The whole life of a thread, as far as it was measured."""
    scopes, tree = case.analysis.scopes, case.tree
    mine = scopes.thread == thread.node.row
    in_line = queued_share(case.profile, thread)
    told = 0 < thread.cpu_ns <= thread.wall_ns
    counts = Counts(thread.cpu_ns, in_line * thread.cpu_ns if in_line >= 0 else -1.0) if told else None
    time = np.where(mine, np.maximum(tree.exclusive("time").sum, 0), 0)
    none = np.zeros(len(tree), np.bool_)
    return Span(1, thread.wall_ns, time, mine, none, contention(case.profile, thread), True, counts)


class Ledger:
    """Books time of one thread's steps in parts, never more than the step has."""

    def __init__(self, case: Case, span: Span) -> None:
        self.case, self.span = case, span
        self.drafts: dict[str, Draft] = {}
        self.tree = case.tree
        self.steps, self.time, self.mine, self.rare = span.steps, span.time, span.mine, span.rare
        self.contention = span.contention
        self.queued_loading = 0.0
        self.loading_ran = 0.0
        """Of loading, what ran in this thread, a step."""

    @cached_property
    def samples(self) -> Rows:
        """CPU time by samples per node, over all steps."""
        sampled = self.tree.exclusive(METRIC).sum
        found: Rows = np.where(self.mine | self.rare, np.maximum(sampled, 0), 0)
        return found

    @cached_property
    def called(self) -> float:
        """Operators that Python calls in a step."""
        calls = self.tree.exclusive("call_time").count
        return float(calls[self.case.called_by_python & self.mine].sum()) / self.steps

    def phase(self, name: str) -> Mask:
        return self.mine & self.case.named(FrameKind.PHASE, name)

    def book(self, key: str, where: Mask, values: NDArray[np.float64], known: str = "measured") -> float:
        """`values`: ns over all steps per node."""
        rows = np.flatnonzero(where & (values > 0))
        if not len(rows):
            return 0.0
        draft = self.drafts.setdefault(key, Draft(known=known))
        if draft.known != known:
            draft.known = "estimated"
        of_step = values[rows] / self.steps
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
