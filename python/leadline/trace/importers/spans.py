"""Spans of threads booked into a calling context tree: what a trace of others shares with a profile of ours.

A span stands below the innermost span that is open on its thread when it begins, unless it names another place or goes
on behind the end of what is open: a range that is opened in a function, as every `with` block is in its `__enter__`,
lasts as long as it says and stands below what holds it whole. At each moment the time is that of the span that began
last, so no nanosecond counts twice however spans overlap. Clocks are coarse: what sticks out by no more than their
rounding is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.builder import ProfileBuilder
from leadline.schema import MetricKind

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ROUNDING_NS = 2_000
"""Of the end of a span in traces that count microseconds, where begin and duration are both rounded."""

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
    """`node` and `end_ns` of every span (cut to what is around it by rounding at most); per thread the time in
    outermost operators, in data loading outside of them, and in outermost timed spans of any kind."""

    node: Rows
    end_ns: Rows
    operator_ns: Mapping[int, int]
    data_ns: Mapping[int, int]
    timed_ns: Mapping[int, int]


def book(builder: ProfileBuilder, spans: Spans, roots: Mapping[int, int], place: Place) -> Booked:
    """Adds the spans' nodes to the builder, with `time` and `call_time`. `roots`: the node of each thread."""
    nodes: list[int] = []
    ends: list[int] = []
    in_operator: list[bool] = []
    in_loading: list[bool] = []
    inside = [0] * spans.start_ns.size  # time that spans which began later took from a timed one
    operator_ns, data_ns, timed_ns = (dict.fromkeys(roots, 0) for _ in range(3))
    open_of = {thread: _Open(root) for thread, root in roots.items()}
    is_timed: list[bool] = spans.timed.tolist()
    frames: list[int] = spans.frame.tolist()
    columns = (spans.thread, spans.start_ns, spans.end_ns, spans.operator, spans.loading)
    for row, (thread, start, end, operator, loading) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        opened, timed, frame = open_of[thread], is_timed[row], frames[row]
        opened.close(start, ends, frames, builder)
        rows = opened.rows
        held = len(rows)
        if timed:
            while held and ends[rows[held - 1]] + _ROUNDING_NS < end:
                held -= 1
            end = max(start, min(end, ends[rows[held - 1]]) if held and is_timed[rows[held - 1]] else end)
        around = rows if held == len(rows) else rows[:held]
        above = around[-1] if around else -1
        standing = opened.nodes[held - 1] if held else roots[thread]
        below = place(row, Around(standing, around), nodes)
        was_operator, was_loading = (in_operator[above], in_loading[above]) if around else (False, False)
        if timed:
            at = start
            for one in reversed(rows):
                if is_timed[one] and ends[one] > at:
                    until = min(end, ends[one])
                    inside[one] += until - at
                    at = until
                if at >= end:
                    break
            timed_ns[thread] += end - at
        if operator and not was_operator:
            operator_ns[thread] += end - start
            data_ns[thread] -= end - start if was_loading else 0
        if loading and not (was_operator or was_loading):
            data_ns[thread] += end - start
        node = below if frame == NO_FRAME else builder.child(below, frame)
        nodes.append(node)
        ends.append(end)
        in_operator.append(was_operator or operator)
        in_loading.append(was_loading or (loading and not was_operator))
        opened.add(row, node, crosses=bool(rows) and end > ends[rows[-1]], moves=not timed and below == standing)
    for row in np.flatnonzero(spans.timed).tolist():
        taken = ends[row] - int(spans.start_ns[row])
        builder.add(nodes[row], MetricKind.TIME, taken - inside[row])
        builder.add(nodes[row], MetricKind.CALL_TIME, taken)
    return Booked(np.array(nodes, dtype=np.int64), np.array(ends, dtype=np.int64), operator_ns, data_ns, timed_ns)


class _Open:
    """The spans that are open on a thread, in order of their begin, and the node below which each holds things now."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.rows: list[int] = []
        self.nodes: list[int] = []
        self._moves: list[bool] = []  # whether it is a function, which goes on when what is around it ends
        self._crossing = False  # whether one may end before another that began later

    def add(self, row: int, node: int, *, crosses: bool, moves: bool) -> None:
        self.rows.append(row)
        self.nodes.append(node)
        self._moves.append(moves)
        self._crossing |= crosses

    def close(self, now: int, ends: list[int], frames: list[int], builder: ProfileBuilder) -> None:
        """Take out what has ended. A function that goes on behind a range around it stands below what is left."""
        rows = self.rows
        while rows and ends[rows[-1]] <= now:
            rows.pop()
            self.nodes.pop()
            self._moves.pop()
        if not self._crossing:
            return
        first = next((place for place, row in enumerate(rows) if ends[row] <= now), -1)
        self._crossing = any(ends[after] > ends[row] for row, after in pairwise(rows))
        if first < 0:
            return
        left = [(row, node, moves) for row, node, moves in zip(rows[first:], self.nodes[first:], self._moves[first:],
                strict=True) if ends[row] > now]  # fmt: skip
        del rows[first:], self.nodes[first:], self._moves[first:]
        moving = True
        for row, node, moves in left:
            moving &= moves
            if moving:
                below = self.nodes[-1] if self.nodes else self.root
                node = below if frames[row] == NO_FRAME else builder.child(below, frames[row])
            rows.append(row)
            self.nodes.append(node)
            self._moves.append(moves)
