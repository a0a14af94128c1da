"""What a graph says about the trained network: gradients and their readiness, layers, activations, parameters.

All of it comes from operator shapes and layer names in the trace; functions return nothing rather than guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leadline.whatif.graph import Graph
from leadline.whatif.kernels import ELEMENT_BYTES
from leadline.whatif.kinds import EdgeType, IntArray, Phase, Selection, TaskKind
from leadline.whatif.units import show_bytes

ACCUMULATE = r"^torch::autograd::AccumulateGrad$"
_WEIGHTED = {
    "aten::linear": (1, 2), "aten::addmm": (2, 0), "aten::conv1d": (1, 2), "aten::conv2d": (1, 2),
    "aten::conv3d": (1, 2), "aten::batch_norm": (1, 2), "aten::layer_norm": (2, 3), "aten::embedding": (0,),
    "aten::group_norm": (2, 3),
}  # fmt: skip
"""Operators with parameters and the positions of these among the inputs (aten native_functions.yaml)."""


_ACTIVATION = re.compile(r"relu|gelu|silu|sigmoid|tanh|dropout|hardswish|softplus|activation", re.IGNORECASE)
_ENOUGH = 8
"""How many of a layer's tasks are asked for a shape before it counts as having none."""


@dataclass(frozen=True)
class Gradient:
    """One parameter's gradient in one step."""

    bytes: int
    ready_after: tuple[int, ...]
    """Tasks whose end makes it complete."""
    layer: str
    order: float


@dataclass(frozen=True)
class Layer:
    """Device work (CPU work where there is no device) of one layer in one step."""

    name: str
    forward: Selection
    backward: Selection
    first: float
    """Position of its first forward task."""


def bytes_of(shape: Sequence[Any], dtype: str) -> int:
    """Bytes of a tensor, of all tensors of a list; unknown element types count four bytes."""
    if any(isinstance(axis, list) for axis in shape):
        return sum(bytes_of(part, dtype) for part in shape if isinstance(part, list) and part)
    return int(math.prod(shape)) * ELEMENT_BYTES.get(dtype, 4)


def worker_kinds(graph: Graph) -> tuple[TaskKind, ...]:
    """What does the arithmetic: device tasks, or CPU tasks in a trace without a device."""
    return (TaskKind.GPU,) if bool((graph.column("kind")[graph.alive] == TaskKind.GPU).any()) else (TaskKind.CPU,)


def work_ns(graph: Graph, tasks: Selection) -> int:
    """Time of tasks alone: durations, and for CPU tasks the gaps, in which an operator goes on after what it called."""
    cpu = graph.column("kind")[tasks.ids] == TaskKind.CPU
    gaps = np.where(cpu, np.maximum(graph.column("gap_ns")[tasks.ids], 0), 0)
    return int((graph.column("duration_ns")[tasks.ids] + gaps).sum())


def gradients(graph: Graph, step: int, rank: int | None = None) -> list[Gradient]:
    """Gradients of one step in the order in which they become complete; empty when the trace has no shapes."""
    marks = graph.select(name=ACCUMULATE, step=step, rank=rank)
    found: list[Gradient] = []
    launches = _Launches(graph, step)
    for mark in marks:
        shapes, dtypes = graph.shapes(mark), graph.dtypes(mark)
        if shapes and isinstance(shapes[0], list):
            size = bytes_of(shapes[0], dtypes[0] if dtypes else "float")
            found.append(Gradient(size, launches.before(mark), _layer(graph, mark), float(graph.column("order")[mark])))
    return sorted(found, key=lambda item: item.order) or _gradients_of_layers(graph, step)


def _gradients_of_layers(graph: Graph, step: int) -> list[Gradient]:
    found = []
    for layer in layers(graph, step):
        if not layer.backward:
            continue
        size = sum(parameter_bytes(graph, task) for task in graph.select(layer=f"^{_quoted(layer.name)}$", step=step))
        if size:
            orders = graph.column("order")[layer.backward.ids]
            last = int(layer.backward.ids[orders.argmax()])
            found.append(Gradient(size, (last,), layer.name, float(orders.max())))
    return sorted(found, key=lambda item: item.order)


def parameter_bytes(graph: Graph, task: int) -> int:
    """Bytes of the parameters that an operator task uses; 0 for other tasks."""
    positions = _WEIGHTED.get(graph.names[graph.column("name")[task]])
    detail = graph.detail(task)
    if positions is None or "Input Dims" not in detail or int(graph.column("phase")[task]) == Phase.BACKWARD:
        return 0
    shapes, dtypes = graph.shapes(task), graph.dtypes(task)
    total = 0
    for position in positions:
        if position < len(shapes) and isinstance(shapes[position], list) and shapes[position]:
            total += bytes_of(shapes[position], dtypes[position] if position < len(dtypes) else "float")
    return total


def layers(graph: Graph, step: int, rank: int | None = None) -> list[Layer]:
    """Layers of one step in forward order; only those with a name and forward work."""
    work = graph.select(kind=worker_kinds(graph), step=step, rank=rank)
    layer, phase, order = (graph.column(name)[work.ids] for name in ("layer", "phase", "order"))
    found: list[Layer] = []
    for row in np.unique(layer).tolist():
        if not graph.layers[row]:
            continue
        forward = work.ids[(layer == row) & (phase == Phase.FORWARD)]
        backward = work.ids[(layer == row) & (phase == Phase.BACKWARD)]
        if forward.size:
            first = float(order[(layer == row) & (phase == Phase.FORWARD)].min())
            found.append(Layer(graph.layers[row], Selection(forward), Selection(backward), first))
    return sorted(found, key=lambda item: item.first)


def input_bytes(graph: Graph, step: int, rank: int | None = None) -> dict[str, int]:
    """Bytes of each layer's input: the first tensor operand of its first operator with shapes; in forward order."""
    found: dict[str, int] = {}
    tasks = graph.select(kind=TaskKind.CPU, phase=Phase.FORWARD, step=step, rank=rank)
    if worker_kinds(graph) == (TaskKind.GPU,):
        # kernels find the shapes of their operators; calls that launch nothing need not be asked
        tasks = graph.select(kind=TaskKind.GPU, phase=Phase.FORWARD, step=step, rank=rank)
    ids = in_lane_order(graph, tasks)
    layer = graph.column("layer")[ids]
    tried: dict[int, int] = {}
    for task, row in zip(ids[layer > 0].tolist(), layer[layer > 0].tolist(), strict=True):
        name = graph.layers[row]
        if name in found or tried.get(row, 0) >= _ENOUGH:
            continue
        tried[row] = tried.get(row, 0) + 1
        shapes, dtypes = graph.shapes(task), graph.dtypes(task)
        if shapes and isinstance(shapes[0], list) and shapes[0]:
            found[name] = bytes_of(shapes[0], dtypes[0] if dtypes else "float")
    return found


def kept_bytes(graph: Graph, step: int, rank: int | None = None) -> dict[str, int]:
    """Bytes that each layer alone keeps for its backward pass, by layer name.

    An activation keeps its output, as large as its input; any other layer keeps its input, which is already kept where
    the layer before is an activation. Masks and indices are not counted.
    """
    found: dict[str, int] = {}
    after_activation = False
    for name, size in input_bytes(graph, step, rank).items():
        activation = _ACTIVATION.search(name) is not None
        found[name] = size if activation or not after_activation else 0
        after_activation = activation
    return found


def allocated_bytes(graph: Graph) -> int:
    """How far the traced device memory rises above its level at the start; 0 without a memory record."""
    rows = np.array(graph.info.facts.get("memory", ()), dtype=np.int64).reshape(-1, 3)
    device = rows[rows[:, 2] != 0]
    ordered = device[np.argsort(device[:, 0], kind="stable"), 1]
    return int(max(np.cumsum(ordered).max(initial=0), 0))


def memory_sentence(graph: Graph, saved: int, what: str) -> str:
    """How much memory a change frees, beside what the trace shows."""
    if saved <= 0:
        return f"how many activations {what} is unknown, since the trace has no shapes"
    peak = allocated_bytes(graph)
    beside = f" (the traced window allocates up to {show_bytes(peak)})" if peak else ""
    return f"about {show_bytes(min(saved, peak) if peak else saved)} of activations{beside} {what}"


def in_lane_order(graph: Graph, tasks: Selection) -> IntArray:
    """Task ids sorted by their position in time."""
    ids: IntArray = tasks.ids[np.argsort(graph.column("order")[tasks.ids], kind="stable")]
    return ids


def steps_of(graph: Graph) -> tuple[int, ...]:
    """Steps of the window; the distinct step numbers of the tasks where the graph does not say."""
    if graph.info.steps:
        return tuple(graph.info.steps)
    return tuple(np.unique(graph.column("step")[graph.alive]).tolist())


def parts_of(graph: Graph) -> list[tuple[int, int]]:
    """Every (step, rank) of the graph."""
    ranks = sorted({lane.rank for lane in graph.lanes})
    return [(step, rank) for step in steps_of(graph) for rank in ranks]


class _Launches:
    """Looks up the last device task launched before a CPU task."""

    def __init__(self, graph: Graph, step: int) -> None:
        self.graph = graph
        edges = graph.edges
        launch = edges["type"] == EdgeType.LAUNCH
        source, target = edges["src"][launch], edges["dst"][launch]
        compute = (graph.column("kind")[target] == TaskKind.GPU) & (graph.column("step")[target] == step)
        order = graph.column("order")[source[compute]]
        by_order = np.argsort(order, kind="stable")
        self.order = order[by_order]
        self.target = target[compute][by_order]

    def before(self, task: int) -> tuple[int, ...]:
        """The CPU task itself and the device work launched last before it."""
        at = int(np.searchsorted(self.order, self.graph.column("order")[task]))
        return (task, int(self.target[at - 1])) if at else (task,)


def _layer(graph: Graph, task: int) -> str:
    return graph.layers[int(graph.column("layer")[task])]


def _quoted(text: str) -> str:
    return "".join(f"\\{letter}" if not letter.isalnum() and letter != "_" else letter for letter in text)
