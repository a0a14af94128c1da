"""What the graph itself may have wrong, and how far a gain depends on it.

Each doubt is a second graph on which the question is asked again: with every residual at the median of its class, and
without the waits that were guessed. In the trace of one rank of many, collectives hold the wait for the others; frozen
at one end, at the other it shrinks as this rank's own step does, as if all ranks were alike. The prediction stands in
the middle of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import transfer_ns
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, GraphError, TaskKind
from leadline.whatif.pages import PAGES, without_new_pages
from leadline.whatif.ranges import Doubts
from leadline.whatif.recorder import RECORDER, has_device, without_recorder
from leadline.whatif.residuals import causal
from leadline.whatif.simulator import Result, simulate
from leadline.whatif.steady import Steady
from leadline.whatif.tables import PART_OF_STEP, PYTHON

_LEAST = 1e-4  # of a logarithm: smaller changes are none
_ON_CPU = 0.035
"""Standard deviation of the gain of a change on a CPU: processes of one program differ by as much there, and half of
the predictions of the pairs that factors were chosen with were off by more than 4 % (bench/whatif/cpu_pairs.py)."""
_FULL_FROM = 0.01  # of a logarithm: a change that changes less answers to it in proportion
_UNCLEAR = 0.7  # of a gain; so much is nothing within nine cases of ten
_FEW_LEFT_OUT = 0.01  # of the events
_WARM_FROM = 0.3  # of the operators' time, from which on the caches are those of what is left
CACHES = "caches that hold more of what is left"
OTHER_RANKS = "the wait for other ranks, which are not in the trace"


@dataclass(frozen=True)
class Structural:
    """Doubts, what to multiply the predicted time with, and what to say about it."""

    doubts: Doubts
    shift: float
    sentences: tuple[str, ...]


class Structure:
    """The second graphs of one graph, with their replays."""

    def __init__(
        self, graph: Graph, result: Result, measured_ns: float, steady: Steady, recorded: Graph | None = None
    ) -> None:
        """graph: what is asked about; recorded: the trace's own graph, where that is another."""
        self._graph = graph
        self._steady = steady
        self._base_ns = steady.step_ns(graph, result)
        self._others: list[tuple[str, Graph, float]] = []
        self._own_ns: float | None = None
        self.causal_error = 0.0
        seen = _result(causal(graph if recorded is None else recorded))
        if seen is not None and measured_ns > 0:
            self.causal_error = seen.makespan_ns / max(len(seen.steps), 1) / measured_ns - 1
        second = causal(graph)
        if (time := self._step_ns(second)) is not None:
            self._others.append(("residuals", second, time))
        self._on_cpu = not has_device(graph)
        self._old_pages = self._with_time(without_new_pages(graph) if self._on_cpu else None)
        self._unrecorded = self._with_time(self._bare() if recorded is None else None)
        guessed = graph.edges["type"] == EdgeType.GUESSED
        if guessed.any():
            free = graph.copy()
            free.disconnect(EdgeType.GUESSED)
            time = self._step_ns(free)
            if time is not None:
                self._others.append(("guessed waits", free, time))

    def _bare(self) -> Graph | None:
        """Without what a recorder usually costs; None for whole operations, and where no gain can answer to it."""
        graph = self._graph
        if graph.info.of_operations or not (graph.alive & (graph.column("kind") == TaskKind.CPU)).any():
            return None
        return without_recorder(graph, technique("recorder_event_ns", larger_is_faster=False).expected)

    def _with_time(self, graph: Graph | None) -> tuple[Graph, float] | None:
        time = None if graph is None else self._step_ns(graph)
        return (graph, time) if graph is not None and time else None

    def _step_ns(self, graph: Graph) -> float | None:
        result = _result(graph)
        return None if result is None else self._steady.step_ns(graph, result)

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
        for name, share in _unclear(self._graph).items():
            doubts.either_way[name] = share * abs(gain)
        doubts.either_way["causes"] = abs(self.causal_error) * min(abs(1 - math.exp(-gain)), 1.0)
        shift, sentences = 1.0, ()  # type: float, tuple[str, ...]
        bare = again(self._unrecorded[0]) if self._unrecorded is not None else None
        if self._unrecorded is not None and bare is not None and bare > 0:
            less = gain - math.log(self._unrecorded[1] / bare)
            if abs(less) > _LEAST and not self._on_cpu:
                # of a recorder whose cost beside a device is not known: between nothing and what it is on a CPU
                doubts.facts[RECORDER] = (max(-less, 0.0), min(-less, 0.0))
                sentences = ("the cost of recording is unknown: the range includes none, and as much as on a CPU",)
            elif abs(less) > _LEAST:
                cost = technique("recorder_event_ns", larger_is_faster=False)
                shift = math.exp(less)
                # in proportion to what it costs, between its least and its most
                doubts.facts[RECORDER] = (
                    less * (1 - cost.optimistic / cost.expected),
                    less * (1 - cost.pessimistic / cost.expected),
                )
                sentences = (f"{RECORDER}, {cost.expected / 1e3:g} µs, is left out of both times",)
        paged = again(self._old_pages[0]) if self._old_pages is not None else None
        if self._old_pages is not None and paged is not None and paged > 0:
            half = (math.log(self._old_pages[1] / paged) - gain) / 2
            if abs(half) > _LEAST:
                shift *= math.exp(-half)
                doubts.facts[PAGES] = (abs(half), -abs(half))
                sentences += (f"{PAGES}, are half as many in both times; the range includes all and none",)
        if self._unrecorded is not None and self._on_cpu:
            if warmer := _left_warm(self._graph, edited):
                doubts.facts[CACHES] = (warmer, 0.0)
            doubts.either_way["processes on a CPU"] = _ON_CPU * min(abs(gain) / _FULL_FROM, 1.0)
        alike = self._ranks_alike(edited)
        if alike is not None and alike > 0 and abs(half := math.log(step_ns / alike) / 2) > _LEAST:
            shift *= math.exp(-half)
            doubts.facts[OTHER_RANKS] = (abs(half), -abs(half))
            sentences += (
                f"{OTHER_RANKS}, shrinks half as much as this rank's step does; the range includes all of it and none",
            )
        return Structural(doubts, shift, sentences)

    def _ranks_alike(self, edited: Graph) -> float | None:
        """Step time where the wait inside collectives changes as this rank's own work does; None where all ranks are
        loaded, or the own work takes as long as before."""
        before = self._graph
        if len(before.info.ranks) > 1 or before.info.world_size <= 1 or not before.select(kind=TaskKind.COMM):
            return None
        if self._own_ns is None:
            self._own_ns = self._step_ns(_without_collectives(before))
        after = self._step_ns(_without_collectives(edited))
        if not self._own_ns or after is None or after >= self._own_ns:
            return None
        return self._step_ns(_with_shorter_waits(edited, after / self._own_ns))


def _unclear(graph: Graph) -> dict[str, float]:
    """What makes doubtful whether the trace shows what is asked about, with its share of every gain: a part of a step
    says little about the whole one, and neither does a trace of which much was left out."""
    found = {}
    if graph.info.facts.get(PART_OF_STEP):
        found["the rest of the step"] = _UNCLEAR
    left_out = float(graph.info.facts.get("unknown_share", 0.0))
    if left_out > _FEW_LEFT_OUT:
        found["events of unknown kinds"] = _UNCLEAR * min(1.0, 3 * left_out)
    return found


def _left_warm(before: Graph, edited: Graph) -> float:
    """How much faster at most what is left runs, as a logarithm, since work on other data no longer takes its place in
    the processor's caches."""
    count = len(before)
    cpu = before.alive & (before.column("kind") == TaskKind.CPU)
    if PYTHON in before.names:
        cpu &= before.column("name") != before.names.index(PYTHON)
    spent = before.column("duration_ns") + np.maximum(before.column("gap_ns"), 0)
    total, gone = float(spent[cpu].sum()), float(spent[cpu & ~edited.alive[:count]].sum())
    faster = technique("left_warm", larger_is_faster=False)
    return -math.log(faster.optimistic) * min(gone / total / _WARM_FROM, 1.0) if total > 0 else 0.0


def _result(graph: Graph) -> Result | None:
    try:
        return simulate(graph)
    except GraphError:
        return None


def _without_collectives(graph: Graph) -> Graph:
    other = graph.copy()
    other.set_duration(other.select(kind=TaskKind.COMM), 0)
    return other


def _with_shorter_waits(edited: Graph, ratio: float) -> Graph:
    """The graph where the wait inside collectives takes `ratio` of its time."""
    collectives = edited.select(kind=TaskKind.COMM)
    duration = edited.column("duration_ns")[collectives.ids]
    waiting = np.maximum(duration - transfer_ns(edited, collectives, Draw()), 0)
    graph = edited.copy()
    graph.set_duration(collectives, np.rint(duration - waiting * (1 - ratio)).astype(np.int64))
    return graph
