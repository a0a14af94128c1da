"""What every run spent at every aligned row, in one step of its loop.

`time`: exclusive wall time, first calls left out. `noise`: how far the mean of this run's steps may be off, from how
the steps (and below them the calls of a path) differ from each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.case import Case
from leadline.analysis.columns import subtree_sums
from leadline.compare.align import Aligned
from leadline.profiles import Profile
from leadline.profiles.measures import Measures
from leadline.profiles.repeats import without_repeats
from leadline.steps.recorded import without_first_calls

Floats = NDArray[np.float64]

_FEW = 5  # measurements: of fewer the spread says nothing
_FIRST_CALL = 20  # times the mean of the others: the first call's, of no spread


@dataclass(frozen=True)
class Run:
    """One profile over the aligned rows, exclusive, per step; bytes and calls are per step too, `peak` is not.
    `step_ns`: wall time of a step, 0 where only its operators were measured; `running`: what the threads ran of the
    time in operators of the whole run, 0 where that is not known. `step_noise`, `noise`: relative standard errors of
    the step's and of every row's mean; NaN where not known. `core_wait`: share of a step in line for a core, 0 where
    that was not measured."""

    steps: int
    found_by: str
    step_ns: float
    step_noise: float
    time: Floats
    noise: Floats
    running: float
    gpu: Floats
    alloc: Floats
    calls: Floats
    peak: float
    core_wait: float = 0.0

    def below(self, aligned: Aligned, values: Floats) -> Floats:
        """`values` with all that lies below every row."""
        sums: Floats = subtree_sums(aligned.shape, np.rint(values).astype(np.int64)).astype(np.float64)
        return sums


def runs_of(aligned: Aligned, profiles: Sequence[Profile]) -> list[Run]:
    """One Run per profile. Where a profile has no loop, its whole is one step."""
    return [_run(aligned, profile, rows) for profile, rows in zip(profiles, aligned.row_of, strict=True)]


class StepSums:
    """Sums of one profile over the aligned rows, of one step of its loop. Set-up is no part of a step; what the loop
    does now and then is a small part of each."""

    def __init__(self, aligned: Aligned, profile: Profile, rows: NDArray[np.int64]) -> None:
        self.case = Case(profile)
        self.loop = loop = self.case.known_loop
        self.steps = max(loop.steps, 1) if loop else 1
        self.size = aligned.shape.size
        self._tree, self._rows = profile.tree, rows
        self._inside = loop.inside | self.case.rare_work if loop else np.ones(len(profile.tree), np.bool_)

    def of(self, values: NDArray[np.int64]) -> Floats:
        """`values` by node, exclusive."""
        return np.bincount(self._rows, weights=np.where(self._inside, values, 0), minlength=self.size) / self.steps

    def metric(self, name: str) -> Floats:
        """An additive metric, or `calls`; of `time` first calls are left out."""
        tree = self._tree
        if name == "calls":
            return self.of(without_repeats(tree).count + tree.exclusive("gpu_time").count)
        measured = tree.exclusive(name)
        if name == "time":
            return self.of(without_first_calls(measured.sum, measured.count, measured.max))
        return self.of(measured.sum)


def _run(aligned: Aligned, profile: Profile, rows: NDArray[np.int64]) -> Run:
    tree = profile.tree
    sums = StepSums(aligned, profile, rows)
    steps, loop = sums.steps, sums.loop
    return Run(
        steps,
        loop.found_by if loop else "the whole run",
        loop.step_ns if loop and loop.measured_by else 0.0,
        _step_noise(sums.case),
        sums.metric("time"),
        _noise(tree.exclusive("time"), rows, sums.size),
        float(tree.exclusive("operator_running_time").sum.sum()) / steps,
        sums.metric("gpu_time"),
        sums.metric("alloc_bytes"),
        sums.metric("calls"),
        float(tree.inclusive("peak_live_bytes").sum[0]),
        _core_wait(sums.case),
    )


def _noise(measured: Measures, rows: NDArray[np.int64], size: int) -> Floats:
    """Per row the standard error of the mean of its measurements over that mean; the slowest is left out where it is a
    first call."""
    count, total, squares = (
        np.bincount(rows, weights=values, minlength=size)
        for values in (measured.count, measured.sum, measured.sum_squares)
    )
    largest = np.zeros(size)
    np.maximum.at(largest, rows, np.where(measured.count > 0, measured.max, 0))
    first = (count >= _FEW) & (largest * (count - 1) > _FIRST_CALL * (total - largest))
    count, total, squares = (
        np.where(first, values - gone, values)
        for values, gone in ((count, 1.0), (total, largest), (squares, largest * largest))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares / count - (total / count) ** 2, 0) / (count - 1)
        found: Floats = np.where((count >= _FEW) & (total > 0), np.sqrt(variance) * count / total, np.nan)
    return found


def _core_wait(case: Case) -> float:
    main = None if case.known_loop is None else case.known_loop.of.main
    return max(main.core_wait_ns, 0.0) / main.mean_ns if main is not None and main.mean_ns else 0.0


def _step_noise(case: Case) -> float:
    """Standard error of the mean step as a share of it, of the steps that were timed one by one; NaN: unknown."""
    loop = case.known_loop
    main = None if loop is None else loop.of.main
    if main is None or main.timed < _FEW or not main.mean_ns:
        return np.nan
    return main.error_ns / main.mean_ns
