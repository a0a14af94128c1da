"""`activation_checkpointing`: activations inside a segment are dropped and computed again before its backward pass.

Each segment's forward work is inserted once more in front of its backward work: one CPU task as long as its calls and
one device task as long as its kernels (Chen et al. 2016; torch.utils.checkpoint).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import launch_latency_ns, launcher_of, main_lane
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import Layer, Part, kept_bytes, layers
from leadline.whatif.model import memory_sentence, work_ns
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
        if any(_checkpointed(known, values) for known in layers(graph).values()):
            return None
        return "no layer of the trace has a name, a forward and a backward pass (record with module names)"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        factor = technique("recompute", larger_is_faster=False).at(draw)
        given = values.optional("segments")
        if given is not None and given < 1:
            raise ScenarioError("activation_checkpointing: segments must be at least 1.")
        inserted = saved = 0
        sizes_of = kept_bytes(graph)
        recomputation = _Recomputation(graph, factor)
        for part, known in layers(graph).items():
            chosen = _checkpointed(known, values)
            number = int(given) if given is not None else max(1, round(math.sqrt(len(chosen))))
            size = max(1, math.ceil(len(chosen) / number)) if chosen else 1
            sizes = sizes_of.get(part, {})
            kept = 0
            for at in range(0, len(chosen), size):
                segment = chosen[at : at + size]
                kept += sizes.get(segment[0].name, 0)
                recomputation.insert(segment, part)
                inserted += 1
            saved = sum(sizes.get(layer.name, 0) for layer in chosen) - kept
        return Applied(
            graph,
            (
                f"every segment runs forward again before its backward pass, in {factor:g} of the first run's time",
                memory_sentence(graph, saved, "are not held; one segment's worth comes back at a time"),
            ),
            count(recomputed_segments=inserted),
        )


def _checkpointed(known: Sequence[Layer], values: Values) -> list[Layer]:
    try:
        pattern = re.compile(values.text("layers") or ".*")
    except re.error as error:
        raise ScenarioError(
            f"activation_checkpointing: layers is not a regular expression ({error}); correct it."
        ) from error
    return [layer for layer in known if layer.backward and pattern.search(layer.name)]


class _Recomputation:
    """Inserts the forward work of segments in front of their backward work."""

    def __init__(self, graph: Graph, factor: float) -> None:
        self._graph = graph
        self._factor = factor
        self._order = graph.column("order").copy()
        self._launcher = launcher_of(graph)
        self._latency_ns = launch_latency_ns(graph)
        self._host_ns = _forward_host_ns(graph)

    def insert(self, segment: Sequence[Layer], part: Part) -> None:
        """One CPU task as long as the segment's calls and one device task as long as its kernels."""
        graph, step = self._graph, part[0]
        backward = Selection(np.concatenate([layer.backward.ids for layer in segment]))
        first = int(backward.ids[self._order[backward.ids].argmin()])
        total = int(sum(work_ns(graph, layer.forward) for layer in segment) * self._factor)
        name = f"recompute {segment[0].name}"
        where: dict[str, Any] = {"phase": Phase.BACKWARD, "step": step, "layer": segment[0].name}
        call_at = int(self._launcher[first])
        if call_at < 0:
            kind = TaskKind(int(graph.column("kind")[first]))
            graph.insert(name, kind, int(graph.column("lane")[first]), total, before=first, **where)
            return
        host = sum(self._host_ns.get((*part, layer.name), 0) for layer in segment)
        thread, stream = int(graph.column("lane")[call_at]), main_lane(graph, backward)
        call = graph.insert(f"launch {name}", TaskKind.CPU, thread, int(host * self._factor), before=call_at, **where)
        graph.insert(name, TaskKind.GPU, stream, total, before=first, launch=call, latency_ns=self._latency_ns, **where)


def _forward_host_ns(graph: Graph) -> dict[tuple[int, int, str], int]:
    """Time of each layer's calls in forward, by (step, rank, layer)."""
    calls = graph.select(kind=TaskKind.CPU, phase=Phase.FORWARD).ids
    calls = calls[graph.column("layer")[calls] > 0]
    spent = graph.column("duration_ns")[calls] + np.maximum(graph.column("gap_ns")[calls], 0)
    columns = (graph.column("step")[calls], graph.rank_of_tasks()[calls], graph.column("layer")[calls])
    found: dict[tuple[int, int, str], int] = {}
    for step, rank, layer, time in zip(*(column.tolist() for column in (*columns, spent)), strict=True):
        key = (step, rank, graph.layers[layer])
        found[key] = found.get(key, 0) + time
    return found
