"""The forward operator of a backward operator of a trace.

Two things tell it: the trace's own arrows, and autograd's sequence numbers. Several operators carry one number, since
an operator notes the number that the next node of the graph will get: the last of them to begin made the node. Numbers
count up in each thread, so the arrows come first.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from leadline.trace.importers.spans import Mask, Rows
from leadline.trace.tables import Kind, Trace

_ROUNDING_NS = 1000  # of arrows in traces whose clock counts microseconds


class ForwardOperators:
    """`rows` are the events that become spans; everything here counts in places of these."""

    def __init__(self, trace: Trace, rows: Rows, backward: Mask) -> None:
        events = trace.events
        self._sequence: list[int] = events["sequence"][rows].tolist()
        operators = np.flatnonzero(events["kind"][rows] == Kind.OPERATOR)
        threads, starts = events["thread"][rows], events["start_ns"][rows]
        self._arrows: dict[int, int] = {}
        of_thread = {int(thread): operators[threads[operators] == thread] for thread in np.unique(threads[operators])}
        for flow in trace.flows:
            ends = []
            for thread, at_ns in ((flow.forward_thread, flow.forward_ns), (flow.backward_thread, flow.backward_ns)):
                mine = of_thread.get(thread)
                ends.append(-1 if mine is None else _at(mine, starts[mine], at_ns))
            if min(ends) >= 0 and ends[0] < ends[1]:
                self._arrows.setdefault(ends[1], ends[0])
        self._made: dict[int, list[int]] = {}
        for place in operators[(events["sequence"][rows][operators] >= 0) & ~backward[operators]].tolist():
            self._made.setdefault(self._sequence[place], []).append(place)

    def of(self, place: int) -> int:
        """Place of the forward operator, -1 where nothing tells it."""
        if place in self._arrows:
            return self._arrows[place]
        made = self._made.get(self._sequence[place], [])
        before = bisect_left(made, place)
        return made[before - 1] if before else -1

    def has_number(self, place: int) -> bool:
        """Whether autograd gave it a number, so that it has a forward operator somewhere."""
        return self._sequence[place] >= 0


def _at(places: Rows, starts: Rows, at_ns: int) -> int:
    """The place whose operator begins nearest to that moment, the outermost of equals; -1 where none does."""
    near = int(np.searchsorted(starts, at_ns - _ROUNDING_NS))
    best, distance = -1, _ROUNDING_NS + 1
    while near < starts.size and starts[near] <= at_ns + _ROUNDING_NS:
        off = abs(int(starts[near]) - at_ns)
        if off < distance:
            best, distance = int(places[near]), off
        near += 1
    return best
