"""What the graph itself may have wrong, and how far a gain depends on it.

Each doubt is a second graph on which the question is asked again: with every residual at the median of its class, and
without the waits that were guessed. In the trace of one rank of many, collectives hold the wait for the others; frozen
at one end, at the other it shrinks as this rank's own step does, as if all ranks were alike. The prediction stands in
the middle of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadline.whatif.edits import transfer_ns
from leadline.whatif.gpus import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, GraphError, TaskKind
from leadline.whatif.ranges import Doubts
from leadline.whatif.residuals import causal
from leadline.whatif.simulator import Result, simulate

_LEAST = 1e-4  # of a logarithm: smaller changes are none
OTHER_RANKS = "the wait for other ranks, which are not in the trace"


@dataclass(frozen=True)
class Structural:
    """Doubts, what to multiply the predicted time with, and what to say about it."""

    doubts: Doubts
    shift: float
    sentences: tuple[str, ...]


class Structure:
    """The second graphs of one graph, with their replays."""

    def __init__(self, graph: Graph, result: Result, measured_ns: float) -> None:
        self._graph = graph
        steps = max(len(result.steps), 1)
        self._base_ns = result.makespan_ns / steps
        self._others: list[tuple[str, Graph, float]] = []
        self.causal_error = 0.0
        self._own_ns: float | None = None
        second = causal(graph)
        time = _step_ns(second)
        if time is not None and measured_ns > 0:
            self.causal_error = time / measured_ns - 1
            self._others.append(("residuals", second, time))
        guessed = graph.edges["type"] == EdgeType.GUESSED
        if guessed.any():
            free = graph.copy()
            free.disconnect(EdgeType.GUESSED)
            time = _step_ns(free)
            if time is not None:
                self._others.append(("guessed waits", free, time))

    def doubts(
        self, edited: Graph, result: Result, step_ns: float, again: Callable[[Graph], float | None]
    ) -> Structural:
        """How far the gain of an edit depends on what the graph may have wrong. `again`: the step time of the same edit
        of another graph, None where it cannot be made."""
        doubts = Doubts()
        if step_ns <= 0 or self._base_ns <= 0:
            return Structural(doubts, 1.0, ())
        gain = math.log(self._base_ns / step_ns)
        if abs(gain) < _LEAST:
            return Structural(doubts, 1.0, ())
        for name, graph, base_ns in self._others:
            time = again(graph)
            if time is not None and time > 0:
                doubts.either_way[name] = abs(math.log(base_ns / time) - gain)
        doubts.either_way["causes"] = abs(self.causal_error) * min(abs(1 - math.exp(-gain)), 1.0)
        shift, sentences = 1.0, ()  # type: tuple[float, tuple[str, ...]]
        alike = self._ranks_alike(edited)
        if alike is not None and alike > 0 and abs(half := math.log(step_ns / alike) / 2) > _LEAST:
            shift = math.exp(-half)
            doubts.facts[OTHER_RANKS] = (abs(half), -abs(half))
            sentences = (
                f"{OTHER_RANKS}, shrinks half as much as this rank's step does; the range holds all of it and nothing",
            )
        return Structural(doubts, shift, sentences)

    def _ranks_alike(self, edited: Graph) -> float | None:
        """Step time where the wait inside collectives changes as this rank's own work does; None where all ranks are
        loaded, or the own work takes as long as before."""
        before = self._graph
        if len(before.info.ranks) > 1 or before.info.world_size <= 1 or not before.select(kind=TaskKind.COMM):
            return None
        if self._own_ns is None:
            self._own_ns = _without_collectives(before)
        after = _without_collectives(edited)
        if not self._own_ns or after is None or after >= self._own_ns:
            return None
        return _with_shorter_waits(edited, after / self._own_ns)


def _step_ns(graph: Graph) -> float | None:
    try:
        result = simulate(graph)
    except GraphError:
        return None
    return result.makespan_ns / max(len(result.steps), 1)


def _without_collectives(graph: Graph) -> float | None:
    other = graph.copy()
    other.set_duration(other.select(kind=TaskKind.COMM), 0)
    return _step_ns(other)


def _with_shorter_waits(edited: Graph, ratio: float) -> float | None:
    """Step time where the wait inside collectives takes `ratio` of its time."""
    collectives = edited.select(kind=TaskKind.COMM)
    duration = edited.column("duration_ns")[collectives.ids]
    waiting = np.maximum(duration - transfer_ns(edited, collectives, Draw()), 0)
    graph = edited.copy()
    graph.set_duration(collectives, np.rint(duration - waiting * (1 - ratio)).astype(np.int64))
    return _step_ns(graph)
