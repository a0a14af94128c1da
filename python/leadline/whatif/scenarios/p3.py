"""`p3`: priority-based parameter propagation (Jayarajan et al., MLSys 2019) with a parameter server.

Every layer's gradient is cut into slices; a slice is pushed when the layer's backward pass has ended and pulled
afterwards; the layer's forward pass of the next step waits for its pulls. Channels take slices of the first layers
first (Daydream 5.1: several push and pull tasks per layer and a priority queue in place of the scheduler). Edges lead
into the next step, so the window is simulated twice in a row.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leadline.units import size as size_text
from leadline.whatif.draws import Draw, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import LaneKind, Phase, Selection
from leadline.whatif.layerwork import layers, steps_of, worker_kinds
from leadline.whatif.model import gradients
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.scenarios.gradient_exchange import (
    NETWORK,
    collective_overhead,
    has_collectives,
    network_of,
    slowest_of,
    unrolled,
    world_size,
)
from leadline.whatif.simulator import simulate
from leadline.whatif.units import Unit


class P3(Scenario):
    """Inserts push and pull tasks per slice, with or without priorities."""

    name = "p3"
    advice = "propagate parameters in slices by priority (P3)"
    parameters = (
        *NETWORK,
        Parameter("slice_size", Unit.SIZE, "bytes of one slice; P3 uses 50,000 values", "200kB"),
        Parameter("order", Unit.TEXT, "which slice goes first", "priority", ("priority", "fifo")),
    )

    def title(self, values: Values) -> str:
        return f"{self.name} world_size={values.optional('world_size') or 0:g}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if values.optional("world_size") is None:
            return "the number of workers is not given (--set world_size=8)"
        if has_collectives(graph):
            return "the trace exchanges gradients already; P3 is predicted from a trace of one worker"
        if not any(layer.backward for known in layers(graph).values() for layer in known):
            return "no layer of the trace has both a forward and a backward pass (record with module names)"
        if not any(_sizes(graph, values).values()):
            return "the trace has no shapes to size the gradients with; add --set gradient_bytes=100MB"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        workers = world_size(self.name, values)
        network, assumed = network_of(graph, values, draw)
        limit = values.number("slice_size")
        if limit < 1:
            raise ScenarioError("p3: slice_size must be at least one byte.")
        overhead = collective_overhead(draw)
        # a server adds the pieces of all workers up and writes the sum before anyone can pull it
        server_ns = technique("server_ns_per_byte", larger_is_faster=False).at(draw)
        late = slowest_of(graph, workers, draw)
        sizes = _sizes(graph, values)
        first_steps = steps_of(graph)
        result = unrolled(graph)
        shift = steps_of(result)[len(first_steps)] - first_steps[0]
        send = result.add_lane("push", LaneKind.CHANNEL)
        receive = result.add_lane("pull", LaneKind.CHANNEL)
        share = (workers - 1) / workers
        all_steps = steps_of(result)
        order = result.column("order").copy()
        by_step = {step: known for (step, _), known in layers(result).items()}
        slices: list[Slice] = []
        # nothing in the window waits for what the last step sends
        for step, following in pairwise(all_steps):
            per_layer = sizes.get(step) or sizes.get(step - shift, {})
            later = {layer.name: layer for layer in by_step.get(following, [])}
            for rank, layer in enumerate(by_step.get(step, [])):
                size = per_layer.get(layer.name, 0)
                if size and layer.backward:
                    priority = float(rank) if values.text("order") == "priority" else 0.0
                    ready, needed = _last(order, layer.backward), later.get(layer.name)
                    target = _first(order, needed.forward) if needed is not None else -1
                    row = result.layer_id(layer.name)
                    slices += [Slice(part, ready, target, row, following, priority) for part in _cut(size, limit)]
        inserted = _exchange(
            result, slices, share / network.bandwidth_bytes_s * overhead + server_ns / 1e9, network.latency_ns, send,
            receive,
        )  # fmt: skip
        late_ns = _wait_for_slowest(result, late)
        total = max((sum(known.values()) for known in sizes.values()), default=0)
        first = "of the first layers first" if values.text("order") == "priority" else "in order of readiness"
        return Applied(
            result,
            (
                f"{size_text(total)} of gradients per step in slices of {size_text(limit)}, {first}, {assumed}",
                "servers are spread over the workers, so each pushes and pulls (n-1)/n of its gradients at full duplex",
                f"servers take {server_ns:g} ns to sum up a byte; the traced update stays unchanged",
                f"the slowest worker is {late_ns / 1e6:.3g} ms later than the mean one in every step",
                "the window is repeated, so that each forward pass waits for parameters; the first pass does not count",
            ),
            count(push_and_pull_tasks=inserted),
            samples=float(workers),
            warm_up_steps=len(first_steps),
        )


def _wait_for_slowest(graph: Graph, share: float) -> float:
    """Lengthen the last backward task of every step by what the slowest worker is behind; ns per step."""
    steps = max(len(steps_of(graph)), 1)
    late_ns = int(simulate(graph).makespan_ns / steps * share)
    order, step = graph.column("order"), graph.column("step")
    backward = graph.select(phase=Phase.BACKWARD, kind=worker_kinds(graph))
    for number in steps_of(graph):
        mine = backward.ids[step[backward.ids] == number]
        if mine.size and late_ns:
            last = int(mine[order[mine].argmax()])
            graph.set_duration(last, int(graph.column("duration_ns")[last]) + late_ns)
    return float(late_ns)


class Slice(NamedTuple):
    """A piece of one layer's gradient; `step` is the one that waits for it."""

    bytes: int
    ready: int
    """Task after which it can be sent."""
    target: int
    """Task that waits for it; -1 for none."""
    layer: int
    step: int
    priority: float


def _cut(size: int, limit: float) -> list[int]:
    """Bytes of the slices of a gradient."""
    whole = int(limit)
    return [min(whole, size - start) for start in range(0, size, whole)]


def _exchange(
    graph: Graph, slices: list[Slice], seconds_per_byte: float, latency_ns: float, send: int, receive: int
) -> int:
    """Push and pull tasks of all slices; returns how many."""
    if not slices:
        return 0
    columns = [np.array(column) for column in zip(*slices, strict=True)]
    size, ready, target, layer, step, priority = columns
    time = (size * seconds_per_byte * 1e9 + latency_ns).astype(np.int64)
    nothing = np.full(size.size, -1, dtype=np.int64)
    pushed = graph.insert_on_channel(
        "push", send, time, after=ready, before=nothing, layer=layer, phase=Phase.BACKWARD, step=step, bytes=size,
        priority=priority,
    )  # fmt: skip
    pulled = graph.insert_on_channel(
        "pull", receive, time, after=pushed, before=target, layer=layer, phase=Phase.BACKWARD, step=step, bytes=size,
        priority=priority,
    )  # fmt: skip
    return int(pushed.size + pulled.size)


def _last(order: NDArray[np.float64], tasks: Selection) -> int:
    return int(tasks.ids[order[tasks.ids].argmax()])


def _first(order: NDArray[np.float64], tasks: Selection) -> int:
    return int(tasks.ids[order[tasks.ids].argmin()])


def _sizes(graph: Graph, values: Values) -> dict[int, dict[str, int]]:
    """Gradient bytes by step and layer, from shapes, else `gradient_bytes` in proportion to backward time."""
    total = values.optional("gradient_bytes")
    found: dict[int, dict[str, int]] = {}
    if total is None:
        for step, known in gradients(graph).items():
            sizes = found.setdefault(step, {})
            for gradient in known:
                if gradient.layer:
                    sizes[gradient.layer] = sizes.get(gradient.layer, 0) + gradient.bytes
        return found
    duration = graph.column("duration_ns")
    for (step, _), known_layers in layers(graph).items():
        times = {layer.name: float(duration[layer.backward.ids].sum()) for layer in known_layers if layer.backward}
        whole = max(sum(times.values()), 1.0)
        found[step] = {name: int(total * time / whole) for name, time in times.items()}
    return found
