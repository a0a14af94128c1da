"""`gist`: activations kept in encoded form between forward and backward (Jain et al., ISCA 2018).

An encoding kernel follows the forward pass of each layer with an activation function, a decoding kernel precedes its
backward pass, each with a launch; both take as long as that layer's own element-wise kernels (Daydream 5.2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import launch_cost_ns, launch_latency_ns, launcher_of
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import Layer, kept_bytes, layers
from leadline.whatif.model import memory_sentence
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count
from leadline.whatif.units import Unit
from leadline.work.kernels import KernelClass

ACTIVATION_LAYER = re.compile(r"relu|pool|gelu|silu|sigmoid|tanh|dropout", re.IGNORECASE)


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
        if any(_encoded(graph, known, _light(graph), values) for known in layers(graph).values()):
            return None
        return "no layer with an activation function has a name, a forward and a backward pass on a GPU"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        cost = launch_cost_ns(graph, technique("launch_cpu_ns", larger_is_faster=False).expected)
        factor = technique("gist_kernels", larger_is_faster=False).at(draw)
        kept = technique(f"gist_kept_{values.text('encoding')}", larger_is_faster=False).expected
        light, insert = _light(graph), _Inserter(graph, cost)
        inserted = saved = 0
        sizes_of = kept_bytes(graph)
        for part, known in layers(graph).items():
            step, sizes = part[0], sizes_of.get(part, {})
            chosen = _encoded(graph, known, light, values)
            saved = int(sum(sizes.get(name, 0) for name, *_ in chosen) * (1 - kept))
            for name, forward, backward, time in chosen:
                for title, anchor, phase in (
                    ("encode", forward, Phase.FORWARD),
                    ("decode", backward, Phase.BACKWARD),
                ):
                    where = {"phase": phase, "step": step, "layer": name}
                    insert(f"{title} {name}", anchor, int(time * factor), where)
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


def _encoded(graph: Graph, known: Sequence[Layer], light: Selection, values: Values) -> list[tuple[str, int, int, int]]:
    """(layer, its last forward task, its first backward task, time of its element-wise forward kernels)."""
    pattern = re.compile(values.text("layers") or ACTIVATION_LAYER.pattern, re.IGNORECASE)
    order, duration = graph.column("order"), graph.column("duration_ns")
    found = []
    for layer in known:
        if not (layer.backward and pattern.search(layer.name)):
            continue
        if own := layer.forward & light:
            last = int(layer.forward.ids[order[layer.forward.ids].argmax()])
            first = int(layer.backward.ids[order[layer.backward.ids].argmin()])
            found.append((layer.name, last, first, int(duration[own.ids].sum())))
    return found


class _Inserter:
    """Inserts a launch and a kernel behind a task in forward, in front of it in backward."""

    def __init__(self, graph: Graph, cost_ns: int) -> None:
        self._graph = graph
        self._cost_ns = cost_ns
        self._launcher = launcher_of(graph)
        self._latency_ns = launch_latency_ns(graph)

    def __call__(self, name: str, anchor: int, time_ns: int, where: dict[str, Any]) -> None:
        graph, launcher = self._graph, int(self._launcher[anchor])
        lane = int(graph.tasks.value("lane", anchor))
        side = "after" if where["phase"] == Phase.FORWARD else "before"
        beside: dict[str, Any] = {side: anchor, **where}
        if launcher < 0:
            graph.insert(name, TaskKind.GPU, lane, time_ns, **beside)
            return
        thread = int(graph.tasks.value("lane", launcher))
        at: dict[str, Any] = {side: launcher, **where}
        call = graph.insert(f"launch {name}", TaskKind.CPU, thread, self._cost_ns, **at)
        graph.insert(name, TaskKind.GPU, lane, time_ns, launch=call, latency_ns=self._latency_ns, **beside)
