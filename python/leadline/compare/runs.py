"""What every run spent at every aligned row, in one step of its loop.

`time`: exclusive wall time, first calls left out, else device time where nothing else was measured. `floor`: the same
as if every measurement had taken as long as its shortest, which other programs on the machine disturb least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.case import Case
from leadline.analysis.columns import subtree_sums
from leadline.analysis.loop import without_first_calls
from leadline.compare.align import Aligned
from leadline.profiles import Profile
from leadline.profiles.repeats import without_repeats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One profile over the aligned rows, exclusive, per step; bytes and calls are per step too, `peak` is not."""

    steps: int
    found_by: str
    time: Floats
    floor: Floats
    gpu: Floats
    alloc: Floats
    calls: Floats
    peak: float

    def below(self, aligned: Aligned, values: Floats) -> Floats:
        """`values` with all that lies below every row."""
        sums: Floats = subtree_sums(aligned.shape, np.rint(values).astype(np.int64)).astype(np.float64)
        return sums


def runs_of(aligned: Aligned, profiles: Sequence[Profile]) -> list[Run]:
    """One Run per profile. Where a profile has no loop, its whole is one step."""
    return [_run(aligned, profile, rows) for profile, rows in zip(profiles, aligned.row_of, strict=True)]


def _run(aligned: Aligned, profile: Profile, rows: NDArray[np.int64]) -> Run:
    tree = profile.tree
    size = aligned.shape.size
    case = Case(profile)
    loop = case.known_loop
    steps = max(loop.steps, 1) if loop else 1
    found_by = loop.found_by if loop else "the whole run"
    # Set-up is no part of a step; what the loop does now and then is a small part of each.
    inside = loop.inside | case.rare_work if loop else np.ones(len(tree), np.bool_)

    def summed(values: NDArray[np.int64]) -> Floats:
        return np.bincount(rows, weights=np.where(inside, values, 0), minlength=size) / steps

    measured = tree.exclusive("time")
    trimmed = without_first_calls(measured.sum, measured.count, measured.max)
    shortest = np.where(measured.count > 0, measured.min, 0) * measured.count
    return Run(
        steps,
        found_by,
        summed(trimmed),
        summed(shortest),
        summed(tree.exclusive("gpu_time").sum),
        summed(tree.exclusive("alloc_bytes").sum),
        summed(without_repeats(tree).count + tree.exclusive("gpu_time").count),
        float(tree.inclusive("peak_live_bytes").sum[0]),
    )
