"""`vdnn`: activations go to host memory after their layer's forward pass and come back before its backward (vDNN).

A device-to-host copy starts with the layer's forward kernels' end; the copy back starts when the backward pass reaches
the layer `lookahead` before, and the layer's backward kernels wait for it. Copies have an engine per direction and are
scheduled in order (Daydream 5.2: additional copies and a custom prefetch schedule).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.units import percent
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import previous_on_lane
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, LaneKind, Phase, TaskKind
from leadline.whatif.layerwork import Layer, Part, input_bytes, layers
from leadline.whatif.model import memory_sentence
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count, gpu_of
from leadline.whatif.units import Unit


class VDnn(Scenario):
    """Inserts offload and prefetch copies per layer."""

    name = "vdnn"
    advice = "offload activations to host memory (vDNN) to save GPU memory"
    costs_time = True
    parameters = (
        Parameter("policy", Unit.TEXT, "whose inputs are offloaded", "conv", ("conv", "all")),
        Parameter("bandwidth", Unit.BANDWIDTH, "host link, one direction; default: the GPU's PCIe link"),
        Parameter("lookahead", Unit.COUNT, "layers between a prefetch and its use", "1"),
        Parameter("activation_bytes", Unit.SIZE, "size of one layer's input, where the trace has no shapes"),
    )

    def title(self, values: Values) -> str:
        return f"{self.name} {values.text('policy')}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if not graph.select(kind=TaskKind.GPU):
            return "the trace has no GPU work"
        if any(plan for _, _, plan in _plans(graph, values)):
            return None
        return (
            "no layer of the trace has a name, a backward pass and shapes (record with module names and record_shapes)"
        )

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        bandwidth, assumed = _bandwidth(graph, values, draw)
        ahead = int(values.number("lookahead"))
        if ahead < 1:
            raise ScenarioError("vdnn: lookahead must be at least 1.")
        engines = {
            rank: tuple(graph.add_lane(name, LaneKind.CHANNEL, rank=rank) for name in ("offload", "prefetch"))
            for rank in sorted({rank for _, rank in layers(graph)})
        }
        order, before = graph.column("order").copy(), previous_on_lane(graph)
        copies = saved = 0
        for (step, rank), ordered, plan in _plans(graph, values):
            out, back = engines[rank]
            saved = sum(size for _, size in plan)
            for number, (layer, size) in enumerate(plan):
                time = int(size / bandwidth * 1e9)
                first = _edge(order, layer.backward.ids, last=False)
                # a checkpointed layer runs forward again during backward; the first run is the one that offloads
                earlier = layer.forward.ids[order[layer.forward.ids] < order[first]]
                offload = graph.insert(
                    "Memcpy DtoH offload", TaskKind.GPU, out, time, after=_edge(order, earlier, last=True),
                    phase=Phase.FORWARD, step=step, bytes=size, layer=layer.name, priority=float(number),
                )  # fmt: skip
                at = next(i for i, other in enumerate(ordered) if other.name == layer.name)
                trigger = ordered[min(at + ahead, len(ordered) - 1)]
                after = [offload]
                if trigger.name != layer.name:
                    # the end of what runs right before the trigger's backward pass is where that pass begins
                    begin = int(before[_edge(order, trigger.backward.ids, last=False)])
                    after += [begin] if begin >= 0 and order[begin] < order[first] else []
                graph.insert(
                    "Memcpy HtoD prefetch", TaskKind.GPU, back, time, after=after,
                    before=first, phase=Phase.BACKWARD, step=step, bytes=size,
                    layer=layer.name, priority=float(-number),
                )  # fmt: skip
                copies += 2
        return Applied(
            graph,
            (
                memory_sentence(graph, saved, f"leave the GPU between forward and backward, over {assumed}"),
                f"a layer's prefetch starts when the backward pass reaches the layer {ahead} after it",
                "copies and kernels do not slow one another, and every offloaded buffer is pinned",
            ),
            count(copies=copies),
        )


def _plans(graph: Graph, values: Values) -> list[tuple[Part, list[Layer], list[tuple[Layer, int]]]]:
    """By step and rank: layers with a backward pass, and those of them to offload, in forward order, with the bytes of
    their inputs. The last layer's input is needed at once."""
    sizes = input_bytes(graph)
    fixed = values.optional("activation_bytes")
    everything = values.text("policy") == "all"
    order = graph.column("order")
    plans = []
    for part, known in layers(graph).items():
        named = [layer for layer in known if layer.backward]
        found = []
        for layer in named[:-1]:
            if layer.first >= float(order[layer.backward.ids].min()):
                continue
            size = int(fixed) if fixed is not None else sizes.get(part, {}).get(layer.name, 0)
            if size and (everything or "conv" in layer.name.lower() or _convolves(graph, layer)):
                found.append((layer, size))
        plans.append((part, named, found))
    return plans


def _convolves(graph: Graph, layer: Layer) -> bool:
    operators = graph.column("operator")[layer.forward.ids]
    return any("conv" in graph.names[row].lower() for row in set(operators.tolist()))


def _edge(order: NDArray[np.float64], ids: IntArray, *, last: bool) -> int:
    """The first or the last of some tasks."""
    keys = order[ids]
    return int(ids[keys.argmax() if last else keys.argmin()])


def _bandwidth(graph: Graph, values: Values, draw: Draw) -> tuple[float, str]:
    given = values.optional("bandwidth")
    if given is not None:
        if given <= 0:
            raise ScenarioError("vdnn: bandwidth must be greater than 0.")
        return given, f"a link of {given / 1e9:g} GB/s each way"
    share = technique("vdnn_pcie", larger_is_faster=True).at(draw)
    gpu = gpu_of(graph)
    if gpu is not None:
        nominal, name = gpu.pcie_gb_s * 1e9, f"the {gpu.name}'s host link"
    else:
        nominal = technique("unknown_host_link_gb_s", larger_is_faster=True).at(draw) * 1e9
        name = "a PCIe link of an unknown GPU"
    return nominal * share, f"{name}, {percent(share)} of {nominal / 1e9:g} GB/s each way"
