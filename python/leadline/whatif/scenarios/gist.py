"""`gist`: activations kept in encoded form between forward and backward (Jain et al., ISCA 2018).

An encoding kernel follows the forward pass of each layer with an activation function, a decoding kernel precedes its
backward pass, each with a launch; both take as long as that layer's own element-wise kernels (Daydream 5.2).
"""

from __future__ import annotations

import re

from leadline.whatif.edits import launch_cost_ns, launch_latency_ns
from leadline.whatif.gpus import Bound, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelClass, KernelTable
from leadline.whatif.kinds import EdgeType, Phase, Selection, TaskKind
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
        if any(_encoded(graph, step, rank, values) for step, rank in parts_of(graph)):
            return None
        return "no layer with an activation function has a name, a forward and a backward pass on a GPU"

    def apply(self, graph: Graph, values: Values, bound: Bound) -> Applied:
        cost = launch_cost_ns(graph, technique("launch_cpu_ns", larger_is_faster=False).expected)
        # an encoder writes less than it reads; a sparse one needs a scan as well
        factor = {Bound.LOW: 0.6, Bound.EXPECTED: 1.0, Bound.HIGH: 2.0}[bound]
        inserted = saved = 0
        for step, rank in parts_of(graph):
            sizes = kept_bytes(graph, step, rank)
            chosen = _encoded(graph, step, rank, values)
            saved = int(sum(sizes.get(name, 0) for name, *_ in chosen) * SAVING[values.text("encoding")])
            for name, forward, backward, time in chosen:
                for title, anchor, phase in (
                    ("encode", forward, Phase.FORWARD),
                    ("decode", backward, Phase.BACKWARD),
                ):
                    _kernel(graph, f"{title} {name}", anchor, int(time * factor), cost, phase, step, name)
                    inserted += 1
        return Applied(
            graph,
            (
                f"encoding and decoding take {factor:g} of the time of the layer's own element-wise forward kernels",
                memory_sentence(graph, saved, "are not held between forward and backward"),
            ),
            count(kernels=inserted),
        )


def _encoded(graph: Graph, step: int, rank: int, values: Values) -> list[tuple[str, int, int, int]]:
    """(layer, its last forward task, its first backward task, time of its element-wise forward kernels)."""
    light = KernelTable(graph).all(KernelClass.ELEMENTWISE, KernelClass.MOVEMENT, KernelClass.REDUCTION)
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
    graph: Graph, name: str, anchor: int, time_ns: int, cost_ns: int, phase: Phase, step: int, layer: str
) -> None:
    """A launch and a kernel behind `anchor` in forward, in front of it in backward."""
    lane = int(graph.column("lane")[anchor])
    forward = phase == Phase.FORWARD
    place = {"after": anchor} if forward else {"before": anchor}
    task = graph.insert(name, TaskKind.GPU, lane, time_ns, phase=phase, step=step, layer=layer, **place)
    launchers = graph.launchers_of(Selection([anchor]))
    if not launchers:
        return
    at = int(launchers.ids[0])
    thread = int(graph.column("lane")[at])
    near = {"after": at} if forward else {"before": at}
    call = graph.insert(f"launch {name}", TaskKind.CPU, thread, cost_ns, phase=phase, step=step, layer=layer, **near)
    graph.disconnect(EdgeType.LAUNCH, task)
    graph.connect(call, task, EdgeType.LAUNCH, launch_latency_ns(graph))
