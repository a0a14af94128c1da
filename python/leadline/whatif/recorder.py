"""What recording cost the CPU of a trace, and graphs without it.

A CPU that runs ahead of its device hides what a recorder costs it, until a prediction makes the device faster and the
CPU the limit. So predictions beside a device start from a graph whose calls are shorter by what is usual; the range
holds the CPU's time as recorded, and the least that is known. Both sides of a gain lose it.

Two things make recorded calls long. A recorder charges each operator and call (`recorder_event_ns`; more with stacks or
memory, less without shapes). And calls take longer while the CPU runs ahead of its device than in a step that waits for
its calls (`call_pace`): as far as the step waits for its device, their time counts as that much shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.units import percent
from leadline.whatif.draws import technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import BoolArray, EdgeType, GraphError, TaskKind
from leadline.whatif.simulator import simulate
from leadline.whatif.steady import Steady
from leadline.whatif.tables import PYTHON

RECORDER = "what recording cost each operator"
TORCH = "torch.profiler"
_KEPT = 0.3  # of an operator's own time at least is its own
_BEHIND = 0.2  # of a step: one that waits less for its device waits for its calls
_CALL_NS = 200_000  # what takes longer computes, waits or loads, and is no call
_EXTRAS = {"record_shapes": 1.0, "with_stack": 1.7, "profile_memory": 1.5}
"""By option of torch.profiler, its cost over that with shapes alone: four small models on a CPU, torch 2.13."""
_BARE = 0.6


def cost_of(options: Mapping[str, Any]) -> float:
    """What torch.profiler costs with these options (the header of its trace names them), over what shapes cost."""
    return max([_BARE, *(cost for name, cost in _EXTRAS.items() if options.get(name))])


@dataclass(frozen=True)
class Unrecorded:
    """A graph as it would be unrecorded: as expected, and as short as can be defended; None for a recorder that nobody
    knows. `sentences` say what was left out."""

    expected: Graph
    least: Graph
    sentences: tuple[str, ...]


def unrecorded(graph: Graph, steady: Steady) -> Unrecorded | None:
    """What to predict from in the place of a trace with a device."""
    options = graph.info.facts.get("recorder")
    if not isinstance(options, Mapping) or options.get("name") != TORCH or not has_device(graph):
        return None
    cost, pace = (technique(name, larger_is_faster=False) for name in ("recorder_event_ns", "call_pace"))
    more = cost_of(options)
    behind = _behind(graph, steady, pace.optimistic)
    if behind is None:
        return None
    expected, least = (1 - (1 - place) * behind for place in (pace.expected, pace.optimistic))
    words = [f"{RECORDER}, {cost.expected * more / 1e3:.2g} µs, is left out of both times"]
    if behind:
        words.append(
            f"calls on the CPU are slower while the device is behind, so {percent(expected)} of their time counts "
            f"({percent(least)} to 100 %)"
        )
    words.append("ranges include the CPU's time as recorded")
    return Unrecorded(
        without_recorder(graph, cost.expected * more, expected),
        without_recorder(graph, cost.pessimistic * more, least),
        ("; ".join(words),),
    )


def recording(
    bare: Unrecorded,
    recorded: Graph,
    steady: Steady,
    before_ns: float,
    after_ns: float,
    again: Callable[[Graph], float | None],
) -> dict[str, tuple[float, float]]:
    """How the logarithm of a gain answers to what recording cost: with the least that the CPU may need, and with its
    time as recorded. before_ns and after_ns: the step without and with the edit, as expected; again: the step of the
    same edit of another graph."""
    if before_ns <= 0 or after_ns <= 0:
        return {}
    gain = math.log(before_ns / after_ns)
    found = []
    for graph in (bare.least, recorded):
        before, after = steady.step_ns(graph, simulate(graph)), again(graph)
        found.append(math.log(before / after) - gain if before > 0 and after else 0.0)
    return {RECORDER: (found[0], found[1])} if any(abs(value) > 1e-4 for value in found) else {}


def has_device(graph: Graph) -> bool:
    return bool(np.isin(graph.column("kind")[graph.alive], (TaskKind.GPU, TaskKind.COMM)).any())


def without_recorder(graph: Graph, cost_ns: float, pace: float = 1.0) -> Graph:
    """The graph with every operator and call on the CPU shorter by `cost_ns`, but never by most of its time, and what
    then is left of calls, and of the Python between them, multiplied with `pace`."""
    bare = graph.copy()
    duration, gap = bare.tasks.write("duration_ns"), bare.tasks.write("gap_ns")
    own = duration + np.maximum(gap, 0)
    less = np.where(_recorded(graph), np.minimum(round(cost_ns), ((1 - _KEPT) * own).astype(np.int64)), 0)
    first = np.minimum(less, duration)
    duration -= first
    gap -= less - first
    if pace < 1:
        calls = _beside_launches(graph) & (own <= _CALL_NS)
        duration[calls] = np.rint(duration[calls] * pace)
        gap[calls] = np.rint(np.maximum(gap[calls], 0) * pace)
    return bare


def _recorded(graph: Graph) -> BoolArray:
    """Operators and calls on the CPU; Python between them is recorded by nobody."""
    found: BoolArray = graph.alive & (graph.column("kind") == TaskKind.CPU)
    if PYTHON in graph.names:
        found &= graph.column("name") != graph.names.index(PYTHON)
    return found


def _beside_launches(graph: Graph) -> BoolArray:
    """What the threads do that launch work."""
    lanes = np.zeros(len(graph.lanes), dtype=np.bool_)
    lanes[graph.column("lane")[graph.edges["src"][graph.edges["type"] == EdgeType.LAUNCH]]] = True
    found: BoolArray = graph.alive & (graph.column("kind") == TaskKind.CPU) & lanes[graph.column("lane")]
    return found


def _behind(graph: Graph, steady: Steady, pace: float) -> float | None:
    """How far the step waits for its device: 1 where shorter calls leave its length alone, 0 where it follows them;
    None where it cannot be simulated."""
    try:
        before, after = (steady.step_ns(one, simulate(one)) for one in (graph, without_recorder(graph, 0.0, pace)))
    except GraphError:
        return None
    if before <= 0:
        return None
    behind = float(np.clip(1 - (1 - after / before) / (1 - pace), 0.0, 1.0))
    return behind if behind >= _BEHIND else 0.0
