"""What a graph says about training: gradients and their readiness, parameters, memory.

All of it comes from operator shapes and layer names in the trace; functions return nothing rather than guess.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.units import size
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import BoolArray, EdgeType, Phase, Selection, TaskKind
from leadline.whatif.layerwork import bytes_of, layers, steps_of

ACCUMULATE = r"^torch::autograd::AccumulateGrad$"
_WEIGHTED = {
    "aten::linear": (1, 2), "aten::addmm": (2, 0), "aten::conv1d": (1, 2), "aten::conv2d": (1, 2),
    "aten::conv3d": (1, 2), "aten::batch_norm": (1, 2), "aten::layer_norm": (2, 3), "aten::embedding": (0,),
    "aten::group_norm": (2, 3),
}  # fmt: skip
"""Operators with parameters and the positions of these among the inputs (aten native_functions.yaml)."""


@dataclass(frozen=True)
class Gradient:
    """One parameter's gradient in one step."""

    bytes: int
    ready_after: tuple[int, ...]
    """Tasks whose end makes it complete."""
    layer: str
    order: float


def work_ns(graph: Graph, tasks: Selection) -> int:
    """Time of tasks alone: durations, and for CPU tasks the gaps, in which an operator goes on after what it called."""
    cpu = graph.column("kind")[tasks.ids] == TaskKind.CPU
    gaps = np.where(cpu, np.maximum(graph.column("gap_ns")[tasks.ids], 0), 0)
    return int((graph.column("duration_ns")[tasks.ids] + gaps).sum())


def gradients(graph: Graph) -> dict[int, list[Gradient]]:
    """Gradients by step, in the order in which they become complete; no steps when the trace has no shapes."""
    found: dict[int, list[Gradient]] = {}
    launches = _Launches(graph)
    step, order = graph.column("step"), graph.column("order")
    for mark in graph.select(name=ACCUMULATE):
        shapes, dtypes = graph.shapes(mark), graph.dtypes(mark)
        if shapes and isinstance(shapes[0], list):
            size = bytes_of(shapes[0], dtypes[0] if dtypes else "float")
            gradient = Gradient(size, launches.before(mark), _layer(graph, mark), float(order[mark]))
            found.setdefault(int(step[mark]), []).append(gradient)
    for missing in set(steps_of(graph)) - found.keys():
        found.setdefault(missing, [])
    if not all(found.values()):
        derived = _gradients_of_layers(graph)
        found = {number: known or derived.get(number, []) for number, known in found.items()}
    return {number: sorted(known, key=lambda item: item.order) for number, known in found.items() if known}


def _gradients_of_layers(graph: Graph) -> dict[int, list[Gradient]]:
    """Gradients as large as the parameters that a layer's operators use, complete when its backward work ends."""
    weighted = np.array([name in _WEIGHTED for name in graph.names], dtype=np.bool_)
    step, layer, order = graph.column("step"), graph.column("layer"), graph.column("order")
    sizes: dict[tuple[int, str], int] = {}
    for task in np.flatnonzero(weighted[graph.column("name")] & graph.alive & (layer > 0)).tolist():
        if _inside(graph, task, weighted):
            continue  # aten::linear calls aten::addmm with the same parameters
        key = (int(step[task]), graph.layers[layer[task]])
        sizes[key] = sizes.get(key, 0) + parameter_bytes(graph, task)
    found: dict[int, list[Gradient]] = {}
    for (number, _), known in layers(graph).items():
        for item in known:
            size = sizes.get((number, item.name), 0)
            if size and item.backward:
                last = int(item.backward.ids[order[item.backward.ids].argmax()])
                found.setdefault(number, []).append(Gradient(size, (last,), item.name, float(order[last])))
    return found


def _inside(graph: Graph, task: int, chosen: BoolArray) -> bool:
    """Whether an operator around the task has one of the chosen names."""
    parent, name = graph.column("parent"), graph.column("name")
    at = int(parent[task])
    while at >= 0:
        if chosen[name[at]]:
            return True
        at = int(parent[at])
    return False


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


def allocated_bytes(graph: Graph) -> int:
    """How far the traced device memory rises above its level at the start; 0 without a memory record."""
    rows = np.array(graph.info.facts.get("memory", ()), dtype=np.int64).reshape(-1, 3)
    device = rows[rows[:, 2] != 0]
    ordered = device[np.argsort(device[:, 0], kind="stable"), 1]
    return int(max(np.cumsum(ordered).max(initial=0), 0))


def memory_sentence(graph: Graph, saved: int, what: str) -> str:
    """How much memory a change frees, beside what the trace shows; `what` happens to the activations."""
    if saved <= 0:
        return f"activations {what}; how much memory that saves is unknown, since the trace has no shapes"
    peak = allocated_bytes(graph)
    beside = f", of {size(peak)} that the traced window allocates," if peak else ""
    return f"about {size(min(saved, peak) if peak else saved)} of activations{beside} {what}"


class _Launches:
    """Looks up the last device task launched before a CPU task."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        edges = graph.edges
        launch = edges["type"] == EdgeType.LAUNCH
        source, target = edges["src"][launch], edges["dst"][launch]
        compute = graph.column("kind")[target] == TaskKind.GPU
        order = graph.column("order")[source[compute]]
        by_order = np.argsort(order, kind="stable")
        self.order = order[by_order]
        self.target = target[compute][by_order]

    def before(self, task: int) -> tuple[int, ...]:
        """The CPU task itself and the device work launched last before it."""
        at = int(np.searchsorted(self.order, self.graph.column("order")[task]))
        same = at and self.graph.column("step")[self.target[at - 1]] == self.graph.column("step")[task]
        return (task, int(self.target[at - 1])) if same else (task,)


def _layer(graph: Graph, task: int) -> str:
    return graph.layers[int(graph.column("layer")[task])]
