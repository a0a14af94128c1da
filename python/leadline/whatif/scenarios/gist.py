"""`gist`: activations kept in encoded form between forward and backward (Jain et al., ISCA 2018).

An encoding kernel follows the forward pass of each layer with an activation function, a decoding kernel precedes its
backward pass, each with a launch; both take as long as that layer's own element-wise kernels (Daydream 5.2).
"""

from __future__ import annotations

import re
from typing import Any

from leadline.whatif.edits import launch_cost_ns, launch_latency_ns
from leadline.whatif.gpus import Bound, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelClass, KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.model import kept_bytes, layers, memory_sentence, parts_of
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count
from leadline.whatif.units import Unit

ACTIVATION_LAYER = re.compile(r"relu|pool|gelu|silu|sigmoid|tanh|dropout", re.IGNORECASE)
SAVING = {"lossless": 1 - 1 / 4, "lossy": 1 - 1 / 8}
"""Share of encoded activations' memory that goes away; between Gist's binarisation (1/32) and its sparse form (1/2)."""


class Gist(Scenario):
    """Inserts encode and decode kernels with their launches."""

    name = "gist"
    advice = "keep activations encoded between forward and backward (Gist) to save GPU memory"
    costs_time = True
    parameters = (
        Parameter("encoding", Unit.TEXT, "lossless, or lossy with small floats", "lossless", ("lossless", "lossy")),
        Parameter("layers", Unit.TEXT, "regular expression on layer names", ACTIVATION_LAYER.pattern),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        light = _light(graph)
        if any(_encoded(graph, light, step, rank, values) for step, rank in parts_of(graph)):
            return None
        return "no layer with an activation function has a name, a forward and a backward pass on a GPU"

    def apply(self, graph: Graph, values: Values, bound: Bound) -> Applied:
        cost = launch_cost_ns(graph, technique("launch_cpu_ns", larger_is_faster=False).expected)
        # an encoder writes less than it reads; a sparse one needs a scan as well
        factor = {Bound.LOW: 0.6, Bound.EXPECTED: 1.0, Bound.HIGH: 2.0}[bound]
        latency = launch_latency_ns(graph)
        light = _light(graph)
        inserted = saved = 0
        for step, rank in parts_of(graph):
            sizes = kept_bytes(graph, step, rank)
            chosen = _encoded(graph, light, step, rank, values)
            saved = int(sum(sizes.get(name, 0) for name, *_ in chosen) * SAVING[values.text("encoding")])
            for name, forward, backward, time in chosen:
                for title, anchor, phase in (
                    ("encode", forward, Phase.FORWARD),
                    ("decode", backward, Phase.BACKWARD),
                ):
                    _kernel(graph, f"{title} {name}", anchor, int(time * factor), (cost, latency), phase, step, name)
                    inserted += 1
        return Applied(
            graph,
            (
                f"encoding and decoding take {factor:g} of the time of the layer's own element-wise forward kernels",
                memory_sentence(graph, saved, "are not held between forward and backward"),
            ),
            count(kernels=inserted),
        )


def _light(graph: Graph) -> Selection:
    return KernelTable(graph).all(KernelClass.ELEMENTWISE, KernelClass.MOVEMENT, KernelClass.REDUCTION)


def _encoded(graph: Graph, light: Selection, step: int, rank: int, values: Values) -> list[tuple[str, int, int, int]]:
    """(layer, its last forward task, its first backward task, time of its element-wise forward kernels)."""
    pattern = re.compile(values.text("layers") or ACTIVATION_LAYER.pattern, re.IGNORECASE)
    order, duration = graph.column("order"), graph.column("duration_ns")
    found = []
    for layer in layers(graph, step, rank):
        own = layer.forward & light
        if pattern.search(layer.name) and layer.backward and own:
            last = int(layer.forward.ids[order[layer.forward.ids].argmax()])
            first = int(layer.backward.ids[order[layer.backward.ids].argmin()])
            found.append((layer.name, last, first, int(duration[own.ids].sum())))
    return found


def _kernel(
    graph: Graph,
    name: str,
    anchor: int,
    time_ns: int,
    cost_and_latency: tuple[int, int],
    phase: Phase,
    step: int,
    layer: str,
) -> None:
    """A launch and a kernel behind `anchor` in forward, in front of it in backward."""
    lane = int(graph.column("lane")[anchor])
    launchers = graph.launchers_of(Selection([anchor]))
    side = "after" if phase == Phase.FORWARD else "before"
    where: dict[str, Any] = {"phase": phase, "step": step, "layer": layer}
    call = None
    if launchers:
        at = int(launchers.ids[0])
        thread = int(graph.column("lane")[at])
        beside: dict[str, Any] = {side: at, **where}
        call = graph.insert(f"launch {name}", TaskKind.CPU, thread, cost_and_latency[0], **beside)
    latency = cost_and_latency[1] if launchers else 0
    where[side] = anchor
    graph.insert(name, TaskKind.GPU, lane, time_ns, launch=call, latency_ns=latency, **where)
