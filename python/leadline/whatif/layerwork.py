"""The layers of a network as a graph shows them: their work in forward and backward, and the tensors they keep.

Everything is found for all steps and ranks at once, since a window may hold dozens of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.hardware.precision import ELEMENT_BYTES
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, Phase, Selection, TaskKind

Part = tuple[int, int]
"""(step, rank)."""

_ACTIVATION = re.compile(r"relu|gelu|silu|sigmoid|tanh|dropout|hardswish|softplus|activation", re.IGNORECASE)
_COLUMNS = ("alive", "kind", "lane", "layer", "phase", "step", "order")  # what tells layers
_ENOUGH = 8
"""How many of a layer's tasks are asked for a shape before it counts as having none."""


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


def layers(graph: Graph) -> Mapping[Part, Sequence[Layer]]:
    """Layers of every step and rank in forward order; only those with a name and forward work."""
    return graph.remembered(_layers, *_COLUMNS)


def _layers(graph: Graph) -> dict[Part, list[Layer]]:
    kind, phase = graph.column("kind"), graph.column("phase")
    wanted = graph.alive & (kind == int(worker_kinds(graph)[0])) & (graph.column("layer") > 0)
    ids = np.flatnonzero(wanted & ((phase == Phase.FORWARD) | (phase == Phase.BACKWARD)))
    keys = (graph.column("step")[ids], graph.rank_of_tasks()[ids], graph.column("layer")[ids], phase[ids])
    by_key = np.lexsort(keys[::-1])
    ids, sorted_keys = ids[by_key], [key[by_key] for key in keys]
    changes = np.any([key[1:] != key[:-1] for key in sorted_keys], axis=0) if ids.size else np.zeros(0, dtype=np.bool_)
    parts = np.split(ids, np.flatnonzero(changes) + 1) if ids.size else []
    order = graph.column("order")
    work: dict[tuple[int, int, int], dict[int, IntArray]] = {}
    at = 0
    for part in parts:
        step, rank, layer, of_phase = (int(key[at]) for key in sorted_keys)
        work.setdefault((step, rank, layer), {})[of_phase] = part
        at += part.size
    found: dict[Part, list[Layer]] = {}
    nothing = np.zeros(0, dtype=np.int64)
    for (step, rank, layer), by_phase in work.items():
        forward = by_phase.get(Phase.FORWARD)
        if forward is not None:
            backward = by_phase.get(Phase.BACKWARD, nothing)
            item = Layer(graph.layers[layer], Selection(forward), Selection(backward), float(order[forward].min()))
            found.setdefault((step, rank), []).append(item)
    return {part: sorted(items, key=lambda item: item.first) for part, items in found.items()}


def input_bytes(graph: Graph) -> Mapping[Part, Mapping[str, int]]:
    """Bytes of each layer's input, by step and rank: the first tensor operand of its first operator with shapes; in
    forward order."""
    return graph.remembered(_input_bytes, *_COLUMNS, "detail", "parent")


def _input_bytes(graph: Graph) -> dict[Part, dict[str, int]]:
    # kernels find the shapes of their operators; calls that launch nothing need not be asked
    ids = in_lane_order(graph, graph.select(kind=worker_kinds(graph), phase=Phase.FORWARD))
    ids = ids[graph.column("layer")[ids] > 0]
    columns = (graph.column("step")[ids], graph.rank_of_tasks()[ids], graph.column("layer")[ids])
    tried: dict[tuple[int, int, int], int] = {}
    found: dict[Part, dict[str, int]] = {}
    for task, step, rank, layer in zip(ids.tolist(), *(column.tolist() for column in columns), strict=True):
        key = (step, rank, layer)
        number = tried.get(key, 0)
        if number >= _ENOUGH:
            continue
        shapes, dtypes = graph.shapes(task), graph.dtypes(task)
        tried[key] = number + 1
        if shapes and isinstance(shapes[0], list) and shapes[0]:
            tried[key] = _ENOUGH
            size = bytes_of(shapes[0], dtypes[0] if dtypes else "float")
            found.setdefault((step, rank), {}).setdefault(graph.layers[layer], size)
    return found


def kept_bytes(graph: Graph) -> dict[Part, dict[str, int]]:
    """Bytes that each layer alone keeps for its backward pass, by step and rank.

    An activation keeps its output, as large as its input; any other layer keeps its input, which is already kept where
    the layer before is an activation. Masks and indices are not counted.
    """
    found: dict[Part, dict[str, int]] = {}
    for part, sizes in input_bytes(graph).items():
        kept = found[part] = {}
        after_activation = False
        for name, size in sizes.items():
            activation = _ACTIVATION.search(name) is not None
            kept[name] = size if activation or not after_activation else 0
            after_activation = activation
    return found


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
