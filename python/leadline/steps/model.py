"""What a step is, as plain data. Times are nanoseconds of wall time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from leadline._dataclass import dataclass, field
from leadline.steps.recorded import Recorded

PROFILER, STEP_CALLS, OPTIMIZER, BATCHES = "profiler", "leadline.step", "optimizer", "batches"
MODULE_CALLS, PROGRAM_CALLS, LAUNCHES = "module calls", "program calls", "launches"
REPETITION, WHOLE_TRACE = "repetition", "whole trace"
COUNTED = {
    PROFILER: "the profiler's marks",
    STEP_CALLS: "calls of leadline.step",
    OPTIMIZER: "optimizer steps",
    BATCHES: "batches loaded",
    MODULE_CALLS: "calls of the outermost module",
    PROGRAM_CALLS: "calls of a compiled program",
    LAUNCHES: "launches of the kernels with most device time",
    REPETITION: "repetitions of a sequence of operators",
}
"""What a step rests on, in words that complete "... were counted"."""

INTERVAL = 1.96
"""Standard errors on each side of a mean: the mean lies between in 19 cases of 20."""


@dataclass(frozen=True)
class Step:
    """One step of an event table. [start_ns, end_ns): from its mark to the next, on the thread that runs the loop;
    `done_ns`: when the device work that it launched had ended too, never before `end_ns`."""

    number: int
    start_ns: int
    end_ns: int
    done_ns: int = -1

    def __post_init__(self) -> None:
        if self.done_ns < self.end_ns:
            object.__setattr__(self, "done_ns", self.end_ns)


@dataclass(frozen=True)
class Found:
    """Steps of an event table in time order, what they rest on, and a sentence on what speaks against them (empty where
    nothing does). `warm_up`: steps at the beginning that took much longer than the others; they are not in `steps`.
    `others`: steps that are not beside those, since nothing was recorded for long in some. `left_out`: a sentence on
    what is left out."""

    steps: tuple[Step, ...]
    found_by: str
    doubt: str = ""
    warm_up: tuple[Step, ...] = ()
    others: tuple[Step, ...] = ()
    left_out: str = ""
    behind_ns: int = -(1 << 62)
    """When the device had done what was launched before the first step of all: until then it did not work for any."""

    @property
    def everything(self) -> tuple[Step, ...]:
        """All steps in time order, those that are left out too."""
        return tuple(sorted((*self.steps, *self.warm_up, *self.others), key=lambda step: step.start_ns))

    @cached_property
    def walls_ns(self) -> tuple[int, ...]:
        """How long each took: from when the one before was done, since a device that is behind does one by one. Their
        sum is the time from the first one's start to when the last was done, less what lay between them."""
        walls, done = [], max((self.behind_ns, *self._done_before))
        for step in self.steps:
            walls.append(max(step.done_ns - max(done, step.start_ns), 0))
            done = max(done, step.done_ns)
        return tuple(walls)

    @property
    def _done_before(self) -> tuple[int, ...]:
        """When steps that are left out in front of the others were done."""
        first = self.steps[0].start_ns if self.steps else 0
        return tuple(step.done_ns for step in (*self.warm_up, *self.others) if step.start_ns < first)

    @property
    def begin_ns(self) -> int:
        """When the first step began, for the device too."""
        return max(self.steps[0].start_ns, self.behind_ns, *self._done_before)

    @property
    def mean_ns(self) -> float:
        """Of a step; 0 where there is none."""
        return sum(self.walls_ns) / len(self.steps) if self.steps else 0.0


@dataclass(frozen=True)
class NoSteps:
    """There are none, and why: completes "no step is known: ..."."""

    reason: str


@dataclass(frozen=True)
class RankSteps:
    """Steps of one process; `number` counts those measured, `mean_ns` and `deviation_ns` are over these without
    `warm_up`. `thread`: row of the thread that crosses the marks, -1 where unknown. `walls_ns`: of each step where they
    are known one by one, else empty."""

    process: int
    rank: int
    thread: int
    number: int
    rests_on: str
    timed_by: str
    """What knew how long they took: "steps" (recorded at their borders), "batches", "calls" (of a compiled program),
    "trace window"; empty: nothing."""
    mean_ns: float
    deviation_ns: float = 0.0
    median_ns: float = 0.0
    """0 where only sums are kept: of batches and calls."""
    min_ns: int = 0
    max_ns: int = 0
    timed: int = 0
    """Steps of which the time is known; the mean is over these."""
    warm_up: int = 0
    running_ns: float = -1.0
    """Of a step: how long its thread had a core; -1 where that was not measured."""
    core_wait_ns: float = -1.0
    """Of a step: how long its thread was ready and waited for a core; -1 where that was not measured."""
    walls_ns: tuple[int, ...] = ()
    span_ns: tuple[int, int] = (0, 0)
    """From the first timed step's start to when the last was done, on the clock of the process's events."""
    marks: tuple[int, ...] = ()
    """Rows of the tree's nodes that stand for one step each, the first is the one that was counted; none where the tree
    does not tell."""

    recorded: Recorded | None = field(default=None, repr=False)
    """The steps as the file's table has them; None where nobody recorded them."""

    @property
    def error_ns(self) -> float:
        """Standard error of the mean. Neighbours are alike (a machine is busy for a while), so it is no less than what
        rows of consecutive steps say; NaN where fewer than two steps were timed."""
        if self.timed < 2:
            return math.nan
        of_rows = self.recorded.standard_error_ns if self.recorded is not None else math.inf
        alone = self.deviation_ns / math.sqrt(self.timed)
        return max(alone, of_rows) if math.isfinite(of_rows) else alone

    @property
    def interval_ns(self) -> tuple[float, float]:
        """In which the mean lies in 19 cases of 20; without end where fewer than two steps were timed."""
        if self.timed < 2:
            return (0.0, math.inf) if self.mean_ns else (0.0, 0.0)
        half = INTERVAL * self.error_ns
        return max(0.0, self.mean_ns - half), self.mean_ns + half


@dataclass(frozen=True)
class Steps:
    """The steps of a profile: those of the process that spent most time in them, and of every rank.

    `number` and the times are of that process. `base_ns` is what shares and gains are of.
    """

    main: RankSteps
    ranks: tuple[RankSteps, ...] = field(default=(), repr=False)
    job_ns: float = 0.0
    """A step of all ranks together, where they are recorded step by step; 0 elsewhere."""

    @property
    def number(self) -> int:
        return self.main.number

    @property
    def rests_on(self) -> str:
        return self.main.rests_on

    @property
    def timed_by(self) -> str:
        return self.main.timed_by

    @property
    def warm_up(self) -> int:
        return self.main.warm_up

    @property
    def mean_ns(self) -> float:
        """Wall time of a step, of a job's the time from the first rank's start to the last one's end; 0 where no clock
        told."""
        return self.job_ns or self.main.mean_ns

    @property
    def median_ns(self) -> float:
        return self.main.median_ns

    @property
    def interval_ns(self) -> tuple[float, float]:
        return self.main.interval_ns

    @property
    def base_ns(self) -> float:
        """What shares and gains are of: the mean."""
        return self.mean_ns


def rank_steps(
    walls_ns: Sequence[int],
    *,
    process: int,
    rank: int,
    thread: int,
    rests_on: str,
    timed_by: str,
    warm_up: int = 0,
    span_ns: tuple[int, int] = (0, 0),
) -> RankSteps:
    """Of steps that are known one by one, warm-up left out."""
    walls = np.asarray(walls_ns, np.float64)
    return RankSteps(
        process=process,
        rank=rank,
        thread=thread,
        number=len(walls) + warm_up,
        rests_on=rests_on,
        timed_by=timed_by,
        mean_ns=float(walls.mean()) if walls.size else 0.0,
        deviation_ns=float(walls.std(ddof=1)) if walls.size > 1 else 0.0,
        median_ns=float(np.median(walls_ns)) if walls.size else 0.0,
        min_ns=int(walls.min()) if walls.size else 0,
        max_ns=int(walls.max()) if walls.size else 0,
        timed=len(walls),
        warm_up=warm_up,
        walls_ns=tuple(int(wall) for wall in walls_ns),
        span_ns=span_ns,
    )
