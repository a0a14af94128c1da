"""The table of steps of an event table: what a profiled process would have recorded at their borders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.profiles.step_rows import StepRows, of_steps, one_step
from leadline.schema import EventKind as Kind
from leadline.steps.model import WHOLE_TRACE, Found
from leadline.steps.names import phase_of
from leadline.steps.protocol import Events

Mask = NDArray[np.bool_]

_COLUMN_OF = {"data loading": "data_ns", "optimizer": "optimizer_ns", "zero_grad": "optimizer_ns"}


def rows_of_events(trace: Events, found: Found, thread: int, backward: Mask) -> StepRows:
    """`thread`: the one that crosses the borders; `backward`: operators of the backward pass. Nothing where no step is
    marked: the whole trace is none."""
    if found.found_by == WHOLE_TRACE or not found.everything:
        return StepRows()
    steps = replace(found, steps=found.everything, warm_up=(), others=())
    begins = np.array([step.start_ns for step in steps.steps], np.int64)
    ends = np.array([step.end_ns for step in steps.steps], np.int64)
    counted = _counted(trace, begins, ends, thread, backward)
    numbered = zip(steps.steps, steps.walls_ns, strict=True)
    return of_steps(
        one_step(step.number, wall, **{name: int(values[row]) for name, values in counted.items()})
        for row, (step, wall) in enumerate(numbered)
    )


def _counted(
    trace: Events, begins: NDArray[np.int64], ends: NDArray[np.int64], thread: int, backward: Mask
) -> Mapping[str, NDArray[np.int64]]:
    events = trace.events
    kind, mine = events["kind"], events["thread"] == thread
    start, over = events["start_ns"], trace.end_ns
    operators = np.flatnonzero(mine & (kind == Kind.OPERATOR))
    operators = operators[_outermost(start[operators], over[operators])]
    found = {
        "operators": np.bincount(_step_of(start[operators], begins, ends), minlength=len(begins) + 1)[:-1],
        "operator_ns": _spent(start, over, operators, begins, ends),
        "device_wait_ns": _spent(start, over, np.flatnonzero(mine & (kind == Kind.SYNCHRONIZE)), begins, ends),
    }
    pass_ns = np.zeros(len(begins), np.int64)
    for one in np.unique(events["thread"][backward]).tolist():
        rows = np.flatnonzero(backward & (events["thread"] == one))
        pass_ns += _spent(start, over, rows[_outermost(start[rows], over[rows])], begins, ends)
    found["backward_ns"] = pass_ns
    phases = [phase_of(name) for name in trace.strings]
    for column in dict.fromkeys(_COLUMN_OF.values()):
        named = np.array([_COLUMN_OF.get(phase or "") == column for phase in phases], np.bool_)
        rows = np.flatnonzero(mine & np.isin(kind, (Kind.REGION, Kind.PHASE)) & named[events["name"]])
        found[column] = _spent(start, over, rows[_outermost(start[rows], over[rows])], begins, ends)
    return found


def _step_of(at: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The step that each time lies in; one more than there are for none."""
    place = np.searchsorted(begins, at, side="right") - 1
    inside = (place >= 0) & (at < ends[np.maximum(place, 0)])
    found: NDArray[np.int64] = np.where(inside, place, len(begins))
    return found


def _spent(
    start: NDArray[np.int64], over: NDArray[np.int64], rows: NDArray[np.int64], begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    """Of spans that do not overlap, the time inside each step."""
    step = _step_of(start[rows], begins, ends)
    limit = np.append(ends, 0)[step]
    inside = np.maximum(np.minimum(over[rows], limit) - start[rows], 0)
    return np.bincount(step, inside, len(begins) + 1)[:-1].astype(np.int64)


def _outermost(start: NDArray[np.int64], over: NDArray[np.int64]) -> Mask:
    """Spans of one thread that none before them, in order of start, reaches over."""
    if not start.size:
        return np.zeros(0, np.bool_)
    order = np.lexsort((-over, start))
    reached = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(over[order])[:-1]))
    found = np.zeros(start.size, np.bool_)
    found[order] = start[order] >= reached
    return found
