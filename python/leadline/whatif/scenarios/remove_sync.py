"""`remove_sync`: the CPU no longer waits for the GPU (no .item(), .cpu(), print of a tensor, nonzero in the step)."""

from __future__ import annotations

import re

import numpy as np

from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, Selection, TaskKind
from leadline.whatif.layerwork import steps_of
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.scenarios.gradient_exchange import unrolled
from leadline.whatif.units import Unit


class RemoveSync(Scenario):
    """Takes out synchronisation edges; the calls stay as ordinary calls."""

    name = "remove_sync"
    advice = "remove the synchronisations inside the step (.item(), .cpu(), printing tensors)"
    parameters = (
        Parameter("sync", Unit.TEXT, "regular expression on the call or its operator; default: every synchronisation"),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if not _waiting(graph):
            return "the CPU never waits for the GPU in this window"
        if not _chosen(graph, values):
            return f"no synchronisation matches {values.text('sync')!r}"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        chosen = _chosen(graph, values)
        if draw.cautious("a wait per step") and not values.text("sync"):
            # one wait per step is needed where the program reports its loss
            chosen = chosen - _last_of_steps(graph, chosen)
        graph.disconnect(EdgeType.SYNC, chosen)
        # without waits a step overlaps the one before it, of which the window's first shows nothing: the second time
        # through the window is what a long run does
        first = len(steps_of(graph))
        if _ends_free(graph, chosen):
            graph = unrolled(graph)
        else:
            first = 0
        return Applied(
            graph,
            (
                "the program does not need the values on the CPU at this point",
                "in the high end of the range the last synchronisation of each step stays",
                "the GPU's queue is long enough for the CPU to run ahead",
            ),
            count(synchronisations=len(chosen)),
            warm_up_steps=first,
        )


def _ends_free(graph: Graph, chosen: Selection) -> bool:
    """Whether a wait that goes is the last of a step, so that the next step may begin before its work has ended."""
    last = _last_of_steps(graph, _waiting(graph) | chosen)
    return bool(last & chosen)


def _waiting(graph: Graph) -> Selection:
    mask = np.zeros(len(graph), dtype=np.bool_)
    mask[graph.waits["task"]] = True
    into = graph.edges["dst"][graph.edges["type"] == EdgeType.SYNC]
    mask[into[graph.column("kind")[into] == TaskKind.CPU]] = True
    return Selection(mask & graph.alive)


def _chosen(graph: Graph, values: Values) -> Selection:
    waiting, pattern = _waiting(graph), values.text("sync")
    if not pattern:
        return waiting
    try:
        return waiting & (graph.select(name=pattern) | graph.select(operator=pattern))
    except re.error as error:
        raise ScenarioError(f"sync={pattern} is not a regular expression ({error}); correct it.") from error


def _last_of_steps(graph: Graph, chosen: Selection) -> Selection:
    step, order = graph.column("step"), graph.column("order")
    last: dict[int, int] = {}
    for task in chosen:
        key = int(step[task])
        if key not in last or order[task] > order[last[key]]:
            last[key] = task
    return Selection(list(last.values()))
