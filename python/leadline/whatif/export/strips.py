"""Measured and predicted timelines one above the other for the page: how busy each lane is along two steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from leadline.units import duration
from leadline.whatif.export.spans import Slices, measured_slices, simulated_slices
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import LaneKind
from leadline.whatif.simulator import Result
from leadline.whatif.tables import PYTHON

_STEPS = 2
_LANES = 8
_BINS = 400
_LEVELS = 5
_COLOUR = {LaneKind.THREAD: "var(--wait)", LaneKind.STREAM: "var(--work)", LaneKind.CHANNEL: "var(--good)"}
_CALLED = {LaneKind.THREAD: "CPU", LaneKind.STREAM: "GPU", LaneKind.CHANNEL: "channel"}

Shares = NDArray[np.float64]
Floats = NDArray[np.float64]


def strips(measured: Graph, title: str, predicted: Graph, result: Result) -> str:
    """Two strips for every lane of those with most work, drawn on one time axis; lanes of a trace keep their numbers in
    a prediction."""
    lengths = np.array(measured.info.step_ns or (measured.info.measured_ns,), dtype=np.float64)
    after_ns = result.per_step_ns.astype(np.float64)
    if not 0 < lengths.size == after_ns.size:
        return ""
    first, steps = _usual(lengths, after_ns)
    old, new = ((float(ns[:first].sum()), float(ns[first : first + steps].sum())) for ns in (lengths, after_ns))
    measured_end, predicted_end = old[1], new[1]
    end = max(measured_end, predicted_end)
    if end <= 0:
        return ""
    before = _busy(measured, measured_slices(measured), old[0], end, measured_end)
    after = _busy(predicted, simulated_slices(predicted, result), new[0], end, predicted_end)
    lanes = sorted(before.keys() | after.keys(), key=lambda lane: -_total(before, lane) - _total(after, lane))[:_LANES]
    rows = [
        f"<tr><td class=text>{escape(_name(predicted, lane))}<td class=strips>"
        + _strip(before.get(lane), "measured", predicted, lane)
        + _strip(after.get(lane), "predicted", predicted, lane)
        for lane in sorted(lanes)
    ]
    numbers = measured.info.steps[first : first + steps] or (0,)
    what = f"steps {numbers[0]} and {numbers[-1]}" if steps > 1 else f"step {numbers[0]}"
    return "\n".join(
        (
            "<h2>Measured and predicted</h2>",
            f"<p>Of {what}: above as measured ({duration(measured_end)}), below with {escape(title)} "
            f"({duration(predicted_end)}), on one axis of {duration(end)}. The fuller the colour, the busier.</p>",
            "<table>", *rows, "</table>",
        )
    )  # fmt: skip


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
    edges = from_ns + np.linspace(0.0, end_ns, _BINS + 1).clip(max=until_ns)
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
        shares[slices.lane] = np.diff(np.interp(edges, points, at_points)) / (end_ns / _BINS)
    return shares


def _strip(shares: Shares | None, which: str, graph: Graph, lane: int) -> str:
    """One strip; neighbours that are as busy are one rectangle."""
    level = np.zeros(_BINS, dtype=np.int64) if shares is None else np.ceil(shares * _LEVELS - 1e-6).astype(np.int64)
    change = np.flatnonzero(np.diff(level)) + 1
    parts = []
    for first, last in zip([0, *change.tolist()], [*change.tolist(), _BINS], strict=True):
        if level[first] > 0:
            opacity = min(int(level[first]), _LEVELS) / _LEVELS
            parts.append(f"<rect x={first} y=0 width={last - first} height=10 fill-opacity={opacity:.1f} />")
    label = f"{_name(graph, lane)}, {which}"
    return (
        f"<svg viewBox='0 0 {_BINS} 10' preserveAspectRatio=none role=img aria-label='{escape(label, quote=True)}' "
        f"fill='{_COLOUR[graph.lanes[lane].kind]}'><title>{escape(label)}</title>{''.join(parts)}</svg>"
    )
