"""Steps in which nothing was recorded for long: a clock that jumped, a program that was stopped, an evaluation that was
not recorded. No prediction follows from their length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.schema import EventKind as Kind
from leadline.steps.model import Found, Step
from leadline.steps.names import phase_of
from leadline.steps.protocol import Events

_LEAST_NS = 1_000_000_000
_STEPS = 3.0  # a hole is longer than this many steps of the usual length


def without_holes(trace: Events, found: Found) -> Found:
    """The longest run of steps that hold no such time, and a sentence that names those that do. Where no step would be
    left all stay."""
    lengths = np.array([step.end_ns - step.start_ns for step in found.steps], dtype=np.int64)
    least = max(_LEAST_NS, _STEPS * float(np.median(lengths))) if lengths.size > 1 else _LEAST_NS
    holes = _holes(trace, least)
    longest = max(((end - start) for start, end in holes), default=0)
    lost = [step for step in found.steps if any(_within(hole, step, least) for hole in holes)]
    if not lost:
        return found
    names = ", ".join(str(step.number) for step in lost[:5]) + (" ..." if len(lost) > 5 else "")
    what = (
        f"nothing was recorded for up to {longest / 1e9:.3g} s in step{'s' if len(lost) > 1 else ''} {names} (the "
        "clock jumped, or the program was suspended)"
    )
    left = _longest_run(found.steps, lost)
    note = f"{what}, and there is no other step: do not trust its length"
    if left:
        used = (
            f"steps {left[0].number} to {left[-1].number} count" if len(left) > 1 else f"step {left[0].number} counts"
        )
        note = f"{what}; {used}"
    others = tuple(step for step in found.steps if step not in left) if left else ()
    return replace(found, steps=left or found.steps, others=others, left_out=note)


def _longest_run(steps: tuple[Step, ...], lost: list[Step]) -> tuple[Step, ...]:
    """The first of the longest runs of steps without a lost one: what a window is made of follows one another."""
    best: tuple[Step, ...] = ()
    run: tuple[Step, ...] = ()
    for step in steps:
        run = () if step in lost else (*run, step)
        best = run if len(run) > len(best) else best
    return best


def _within(hole: tuple[int, int], step: Step, least_ns: float) -> bool:
    """Whether a step counts much of a hole as its time; the next step's mark stands before its first operator."""
    return min(hole[1], step.end_ns) - max(hole[0], step.start_ns) > least_ns / 2


def _holes(trace: Events, least_ns: float) -> list[tuple[int, int]]:
    """Times longer than this that no operator, call, kernel or range of waiting covers."""
    events = trace.events
    if not events["start_ns"].size:
        return []
    loading = np.array([phase_of(name) == "data loading" for name in trace.strings], dtype=np.bool_)
    covers: NDArray[np.bool_] = ~np.isin(events["kind"], (Kind.STEP, Kind.REGION, Kind.PHASE, Kind.MODULE, Kind.PYTHON))
    covers |= loading[events["name"]]
    start, end = events["start_ns"][covers], trace.end_ns[covers]
    if start.size < 2:
        return []
    reached = np.maximum.accumulate(end)[:-1]
    at = np.flatnonzero(start[1:] - reached > least_ns)
    return [(int(reached[row]), int(start[1:][row])) for row in at.tolist()]
