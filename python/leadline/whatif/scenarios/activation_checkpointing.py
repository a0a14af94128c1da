"""`activation_checkpointing`: activations inside a segment are dropped and computed again before its backward pass.

Each segment's forward work is inserted once more in front of its backward work: one CPU task as long as its calls and
one device task as long as its kernels (Chen et al. 2016; torch.utils.checkpoint).
"""

from __future__ import annotations

import math
import re
from typing import Any

from leadline.whatif.edits import launch_latency_ns, main_lane
from leadline.whatif.gpus import Bound, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.model import Layer, kept_bytes, layers, memory_sentence, parts_of, work_ns
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.units import Unit


class ActivationCheckpointing(Scenario):
    """Inserts the recomputation of each segment."""

    name = "activation_checkpointing"
    advice = "checkpoint activations (torch.utils.checkpoint) to save GPU memory"
    costs_time = True
    parameters = (
        Parameter("layers", Unit.TEXT, "regular expression on the layers inside checkpointed segments", ".*"),
        Parameter("segments", Unit.COUNT, "number of segments; default: the square root of the number of layers"),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if any(_checkpointed(graph, step, rank, values) for step, rank in parts_of(graph)):
            return None
        return "no layer of the trace has a name, a forward and a backward pass (record with module names)"

    def apply(self, graph: Graph, values: Values, bound: Bound) -> Applied:
        factor = technique("recompute", larger_is_faster=False).at(bound)
        given = values.optional("segments")
        if given is not None and given < 1:
            raise ScenarioError("activation_checkpointing: segments must be at least 1.")
        inserted = saved = 0
        for step, rank in parts_of(graph):
            chosen = _checkpointed(graph, step, rank, values)
            number = int(given) if given is not None else max(1, round(math.sqrt(len(chosen))))
            size = max(1, math.ceil(len(chosen) / number)) if chosen else 1
            sizes = kept_bytes(graph, step, rank)
            kept = 0
            for at in range(0, len(chosen), size):
                segment = chosen[at : at + size]
                kept += sizes.get(segment[0].name, 0)
                inserted += _recompute(graph, segment, step, rank, factor)
            saved = sum(sizes.get(layer.name, 0) for layer in chosen) - kept
        return Applied(
            graph,
            (
                f"every segment runs forward again before its backward pass, in {factor:g} of the first run's time",
                memory_sentence(graph, saved, "are not held; one segment's worth comes back at a time"),
            ),
            count(recomputed_segments=inserted),
        )


def _checkpointed(graph: Graph, step: int, rank: int, values: Values) -> list[Layer]:
    try:
        pattern = re.compile(values.text("layers") or ".*")
    except re.error as error:
        raise ScenarioError(
            f"activation_checkpointing: layers is not a regular expression ({error}); correct it."
        ) from error
    return [layer for layer in layers(graph, step, rank) if layer.backward and pattern.search(layer.name)]


def _recompute(graph: Graph, segment: list[Layer], step: int, rank: int, factor: float) -> int:
    """The forward work of the segment in front of its backward work; returns 1."""
    order = graph.column("order")
    forward, backward = Selection([]), Selection([])
    for layer in segment:
        forward, backward = forward | layer.forward, backward | layer.backward
    first = int(backward.ids[order[backward.ids].argmin()])
    total = int(work_ns(graph, forward) * factor)
    name = f"recompute {segment[0].name}"
    where: dict[str, Any] = {"phase": Phase.BACKWARD, "step": step, "layer": segment[0].name}
    launchers = graph.launchers_of(first)
    if not launchers:
        kind = TaskKind(int(graph.column("kind")[first]))
        graph.insert(name, kind, int(graph.column("lane")[first]), total, before=first, **where)
        return 1
    at = int(launchers.ids[0])
    names = {layer.name for layer in segment}
    calls = graph.select(kind=TaskKind.CPU, phase=Phase.FORWARD, step=step, rank=rank)
    calls = Selection([t for t in calls if graph.layers[graph.column("layer")[t]] in names]) | graph.launchers_of(
        forward
    )
    host = int(work_ns(graph, calls) * factor)
    thread, stream = int(graph.column("lane")[at]), main_lane(graph, backward)
    call = graph.insert(f"launch {name}", TaskKind.CPU, thread, host, before=at, **where)
    latency = launch_latency_ns(graph)
    graph.insert(name, TaskKind.GPU, stream, total, before=first, launch=call, latency_ns=latency, **where)
    return 1
