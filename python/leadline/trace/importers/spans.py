"""Spans of threads booked into a calling context tree: what a trace of others shares with a profile of ours.

A span stands below the innermost span that is open on its thread when it begins, unless it names another place. Its
exclusive time is what it took less what the spans inside took; where clocks are so coarse that a span outlasts the one
around it, what sticks out is cut off, so no nanosecond counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.builder import ProfileBuilder
from leadline.schema import MetricKind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_FRAME = -1
"""Frame of a span that is only passed through: what is inside hangs below what is around."""


@dataclass(frozen=True)
class Spans:
    """Spans of all threads in order of their start, outer first. `frame`: row of the builder's frames or NO_FRAME;
    `timed`: whether its time counts (an operator does, a Python function is known by what it calls); `operator` and
    `loading`: whether it counts for its thread's time in operators and in data loading."""

    thread: Rows
    start_ns: Rows
    end_ns: Rows
    frame: Rows
    timed: Mask
    operator: Mask
    loading: Mask


@dataclass(frozen=True)
class Around:
    """Where a span begins: the node of what is open around it, and the rows of the spans that are, outer first."""

    node: int
    rows: list[int]


Place = Callable[[int, Around, list[int]], int]
"""Says below which node a span goes: gets its row, what is around, and the nodes of all spans before it."""


@dataclass(frozen=True)
class Booked:
    """`node` and `end_ns` (cut to what is around) of every span; per thread the time in outermost operators, in data
    loading outside of them, and in outermost timed spans of any kind."""

    node: Rows
    end_ns: Rows
    operator_ns: Mapping[int, int]
    data_ns: Mapping[int, int]
    timed_ns: Mapping[int, int]


def book(builder: ProfileBuilder, spans: Spans, roots: Mapping[int, int], place: Place) -> Booked:
    """Adds the spans' nodes to the builder, with `time` and `call_time`. `roots`: the node of each thread."""
    nodes: list[int] = []
    ends: list[int] = []
    holders: list[int] = []  # the innermost timed span that a span is or stands in
    in_operator: list[bool] = []
    in_loading: list[bool] = []
    inside = [0] * spans.start_ns.size  # time of the timed spans directly in a timed one
    operator_ns, data_ns, timed_ns = (dict.fromkeys(roots, 0) for _ in range(3))
    open_rows: dict[int, list[int]] = {thread: [] for thread in roots}
    columns = (spans.thread, spans.start_ns, spans.end_ns, spans.frame, spans.timed, spans.operator, spans.loading)
    for row, (thread, start, end, frame, timed, operator, loading) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        rows = open_rows[thread]
        while rows and ends[rows[-1]] <= start:
            rows.pop()
        above = rows[-1] if rows else -1
        end = max(start, min(end, ends[above]) if rows else end)
        below = place(row, Around(nodes[above] if rows else roots[thread], rows), nodes)
        was_operator, was_loading = (in_operator[above], in_loading[above]) if rows else (False, False)
        holder = holders[above] if rows else -1
        if timed and holder >= 0:
            inside[holder] += end - start
        if operator and not was_operator:
            operator_ns[thread] += end - start
            data_ns[thread] -= end - start if was_loading else 0
        if loading and not (was_operator or was_loading):
            data_ns[thread] += end - start
        if timed and holder < 0:
            timed_ns[thread] += end - start
        nodes.append(below if frame == NO_FRAME else builder.child(below, frame))
        ends.append(end)
        holders.append(row if timed else holder)
        in_operator.append(was_operator or operator)
        in_loading.append(was_loading or (loading and not was_operator))
        rows.append(row)
    for row in np.flatnonzero(spans.timed).tolist():
        taken = ends[row] - int(spans.start_ns[row])
        builder.add(nodes[row], MetricKind.TIME, taken - inside[row])
        builder.add(nodes[row], MetricKind.CALL_TIME, taken)
    return Booked(np.array(nodes, dtype=np.int64), np.array(ends, dtype=np.int64), operator_ns, data_ns, timed_ns)
