"""Measured and predicted timelines one above the other: how busy each lane is along two steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif.export.spans import Slices, measured_slices, simulated_slices
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import LaneKind
from leadline.whatif.simulator import Result
from leadline.whatif.tables import PYTHON

_STEPS = 2
_LANES = 8
BINS = 400
LEVELS = 5
_CALLED = {LaneKind.THREAD: "CPU", LaneKind.STREAM: "GPU", LaneKind.CHANNEL: "channel"}

Shares = NDArray[np.float64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Strip:
    """How busy a lane is, measured and predicted: first bin, number of bins and level of each run that is busy."""

    name: str
    kind: LaneKind
    measured: tuple[tuple[int, int, int], ...]
    predicted: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Strips:
    """Of `steps` of the window, `measured_ns` and `predicted_ns` long, on one axis of `end_ns`."""

    steps: tuple[int, ...]
    title: str
    measured_ns: float
    predicted_ns: float
    end_ns: float
    lanes: tuple[Strip, ...]


def strips(measured: Graph, title: str, predicted: Graph, result: Result) -> Strips | None:
    """Of the lanes with most work, on one time axis; lanes of a trace keep their numbers in a prediction. None where
    there is nothing to draw."""
    lengths = np.array(measured.info.step_ns or (measured.info.measured_ns,), dtype=np.float64)
    after_ns = result.per_step_ns.astype(np.float64)
    if not 0 < lengths.size == after_ns.size:
        return None
    first, steps = _usual(lengths, after_ns)
    old, new = ((float(ns[:first].sum()), float(ns[first : first + steps].sum())) for ns in (lengths, after_ns))
    measured_end, predicted_end = old[1], new[1]
    end = max(measured_end, predicted_end)
    if end <= 0:
        return None
    before = _busy(measured, measured_slices(measured), old[0], end, measured_end)
    after = _busy(predicted, simulated_slices(predicted, result), new[0], end, predicted_end)
    lanes = sorted(before.keys() | after.keys(), key=lambda lane: -_total(before, lane) - _total(after, lane))[:_LANES]
    drawn = tuple(
        Strip(_name(predicted, lane), predicted.lanes[lane].kind, _runs(before.get(lane)), _runs(after.get(lane)))
        for lane in sorted(lanes)
    )
    numbers = measured.info.steps[first : first + steps] or (0,)
    return Strips(tuple(numbers), title, measured_end, predicted_end, end, drawn)


def _usual(measured_ns: Floats, predicted_ns: Floats) -> tuple[int, int]:
    """The first of the steps that are drawn, and how many these are: those that follow one another and take most nearly
    the mean time, measured and predicted, so that they show what the gain is made of."""
    count = min(_STEPS, measured_ns.size)
    apart = np.zeros(measured_ns.size - count + 1)
    for lengths in (measured_ns, predicted_ns):
        total = np.convolve(lengths, np.ones(count), "valid")
        apart += np.abs(total / max(count * float(lengths.mean()), 1.0) - 1)
    return int(np.argmin(apart)), count


def _name(graph: Graph, lane: int) -> str:
    found = graph.lanes[lane]
    rank = f"rank {found.rank} " if len({item.rank for item in graph.lanes}) > 1 else ""
    return f"{rank}{_CALLED[found.kind]} {found.name}"


def _total(shares: Mapping[int, Shares], lane: int) -> float:
    return float(shares[lane].sum()) if lane in shares else 0.0


def _busy(graph: Graph, found: Iterable[Slices], from_ns: float, end_ns: float, until_ns: float) -> dict[int, Shares]:
    """Share of every bin that a lane is busy, from the begin of the steps that are drawn to their end; the bins reach
    from there to `end_ns` later."""
    edges = from_ns + np.linspace(0.0, end_ns, BINS + 1).clip(max=until_ns)
    python = np.array([name == PYTHON for name in graph.names], dtype=np.bool_)
    shares = {}
    for slices in found:
        shown = ~python[graph.column("name")[slices.ids]]
        start, end = slices.start_ns[shown].astype(np.float64), slices.end_ns[shown].astype(np.float64)
        if not start.size:
            continue
        # what the slices before cover counts once; they are in order of their starts
        reached = np.maximum.accumulate(end)
        begin = np.maximum(start, np.concatenate(([0.0], reached[:-1])))
        spent = np.concatenate(([0.0], np.cumsum(np.maximum(reached - begin, 0.0))))
        points = np.column_stack((begin, np.maximum(reached, begin))).ravel()
        at_points = np.column_stack((spent[:-1], spent[1:])).ravel()
        shares[slices.lane] = np.diff(np.interp(edges, points, at_points)) / (end_ns / BINS)
    return shares


def _runs(shares: Shares | None) -> tuple[tuple[int, int, int], ...]:
    """Neighbours that are as busy are one run."""
    if shares is None:
        return ()
    level = np.ceil(shares * LEVELS - 1e-6).astype(np.int64).clip(max=LEVELS)
    change = np.flatnonzero(np.diff(level)) + 1
    runs = zip([0, *change.tolist()], [*change.tolist(), BINS], strict=True)
    return tuple((first, last - first, int(level[first])) for first, last in runs if level[first] > 0)
