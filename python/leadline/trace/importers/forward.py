"""The forward operator of a backward operator of a trace.

Two things tell it: the trace's own arrows, and autograd's sequence numbers. Several operators carry one number, since
an operator notes the number that the next node of the graph will get: the last of them to begin made the node. Numbers
count up in each thread. The arrows come first, so, and a backward operator names its forward thread, though by
autograd's own count of threads: which thread that is follows from what the operators are called, and from their order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter

import numpy as np

from leadline.trace.importers.spans import Mask, Rows
from leadline.trace.tables import Kind, Trace

_BACKWARD = re.compile(r"^(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*$")
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
        self._made: dict[tuple[int, int], list[int]] = {}
        self._of_number: dict[int, list[int]] = {}
        for place in operators[(events["sequence"][rows][operators] >= 0) & ~backward[operators]].tolist():
            self._made.setdefault((int(threads[place]), self._sequence[place]), []).append(place)
            self._of_number.setdefault(self._sequence[place], []).append(place)
        self._named: list[int] = events["forward_thread"][rows].tolist()
        self._thread = self._threads(trace, rows, np.flatnonzero(backward), threads)

    def _threads(self, trace: Trace, rows: Rows, backward: Rows, threads: Rows) -> dict[int, int]:
        """The thread behind each number of autograd's, where several threads made nodes of the graph."""
        made_in = sorted({thread for thread, _ in self._made})
        if len(made_in) < 2:
            return {}
        told: dict[int, Counter[int]] = {}
        for place in backward.tolist():
            named = self._named[place]
            if named <= 0 or self._sequence[place] < 0:
                continue
            votes = told.setdefault(named, Counter())
            if place in self._arrows:
                votes[int(threads[self._arrows[place]])] += 100
            word = _BACKWARD.match(trace.name(int(rows[place])))
            for thread in made_in:
                found = self._last(self._made.get((thread, self._sequence[place]), []), place)
                if found >= 0:
                    alike = word is not None and _word(trace.name(int(rows[found]))) == _word(word[1])
                    votes[thread] += 11 if alike else 1
        by_number = {abs(trace.threads[thread].tid): thread for thread in made_in}
        free, chosen = list(made_in), {}
        for named, votes in sorted(told.items()):
            rest = free or made_in
            # among equals the thread that has this number itself, then the first: numbers are given in order
            best = max(rest, key=lambda thread: (votes[thread], by_number.get(named) == thread, -thread))
            chosen[named] = best
            free = [thread for thread in free if thread != best]
        return chosen

    def of(self, place: int) -> int:
        """Place of the forward operator, -1 where nothing tells it."""
        if place in self._arrows:
            return self._arrows[place]
        thread = self._thread.get(self._named[place])
        number = self._sequence[place]
        made = self._of_number.get(number, []) if thread is None else self._made.get((thread, number), [])
        return self._last(made, place)

    @staticmethod
    def _last(made: list[int], place: int) -> int:
        before = bisect_left(made, place)
        return made[before - 1] if before else -1

    def has_number(self, place: int) -> bool:
        """Whether autograd gave it a number, so that it has a forward operator somewhere."""
        return self._sequence[place] >= 0


def _word(name: str) -> str:
    """`mm` of aten::mm and of MmBackward0's Mm."""
    return name.rpartition("::")[2].replace("_", "").lower()


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
