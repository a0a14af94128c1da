"""How fast this GPU moves bytes in element-wise kernels, from the trace itself; the scale for inserted kernels."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Selection, TaskKind
from leadline.whatif.layerwork import bytes_of
from leadline.whatif.scenarios.base import gpu_of
from leadline.whatif.selftime import SelfTimes
from leadline.work.kernels import KernelClass

DEFAULT_BYTES_S = 500e9
DEFAULT_CPU_NS_PER_BYTE = 0.1
_LARGE_BYTES = 64_000
"""What an operator moves at least to tell a speed; below that it is mostly the call."""
_IN_PLACE = r"^aten::(_foreach_)?(add|sub|mul|div|lerp|addcdiv)_$"
"""Without addcmul_, whose two factors are often one tensor, read once."""
_CHANGES = r"^aten::(_foreach_)?(add|sub|mul|div|lerp|addcmul|addcdiv)_$"
_BY_A_NUMBER = re.compile(r"^aten::(_foreach_)?(add|sub)_$")
_STREAMING = r"^aten::(add_?|mul_?|relu_?|clamp_min_?|threshold_backward|div_?|copy_|addcmul_|addcdiv_)$"


def moved_bytes(graph: Graph, task: int) -> int:
    """Bytes that an element-wise kernel must move: its tensor inputs and one output; 0 without shapes."""
    shapes, dtypes = graph.shapes(task), graph.dtypes(task)
    sizes = [
        bytes_of(shape, dtypes[at] if at < len(dtypes) else "float")
        for at, shape in enumerate(shapes)
        if isinstance(shape, list) and shape and all(isinstance(axis, int) for axis in shape)
    ]
    return sum(sizes) + max(sizes) if sizes else 0


def bytes_of_kernels(graph: Graph) -> NDArray[np.int64]:
    """`moved_bytes` of every device task; by task id, 0 for others."""
    return graph.remembered(_bytes_of_kernels, "detail", "parent", "kind")


def _bytes_of_kernels(graph: Graph) -> NDArray[np.int64]:
    found = np.zeros(len(graph), dtype=np.int64)
    operators = graph.shaped_operators()
    device = np.flatnonzero((graph.column("kind") == TaskKind.GPU) & (operators >= 0))
    rows = graph.column("detail")[operators[device]]
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    found[device] = np.array([moved_bytes(graph, task) for task in device[first].tolist()], dtype=np.int64)[place]
    return found


def nanoseconds_per_byte(graph: Graph) -> tuple[float, str]:
    """Time per byte moved, and where it comes from: the trace's own kernels, the GPU's memory, or a default."""
    light = KernelTable(graph).all(KernelClass.ELEMENTWISE, KernelClass.OPTIMIZER)
    duration = graph.column("duration_ns")
    longest = Selection(light.ids[np.argsort(-duration[light.ids])[:200]])
    rates = [(moved_bytes(graph, task), int(duration[task])) for task in longest]
    known = [(size, time) for size, time in rates if size > 1_000_000 and time > 0]
    if known:
        return sum(time for _, time in known) / sum(size for size, _ in known), "the trace's own element-wise kernels"
    gpu = gpu_of(graph)
    if gpu is not None:
        return 1e9 / (0.8 * gpu.memory_bytes_s), f"80 % of the {gpu.name}'s memory bandwidth"
    return 1e9 / DEFAULT_BYTES_S, "500 GB/s, since the GPU is unknown"


def cpu_nanoseconds_per_byte(graph: Graph) -> float:
    """Time per byte in the element-wise operators of a trace without a device; 0.1 (10 GB/s) where it has none."""
    tasks = graph.select(name=_STREAMING, kind=TaskKind.CPU)
    own = SelfTimes(graph).total_ns()
    rates = [int(own[task]) / size for task in tasks if (size := moved_bytes(graph, task)) > 200_000]
    return float(np.median(rates)) if rates else DEFAULT_CPU_NS_PER_BYTE


def first_operand_bytes(graph: Graph, task: int) -> int:
    """Bytes of an operator's first operand, of all tensors of a list; 0 without shapes."""
    shapes, dtypes = graph.shapes(task), graph.dtypes(task)
    known = bool(shapes) and isinstance(shapes[0], list) and bool(shapes[0])
    return bytes_of(shapes[0], dtypes[0] if dtypes else "float") if known else 0


def in_place_nanoseconds_per_byte(graph: Graph, tasks: Selection) -> float | None:
    """Time per byte that the in-place operators among `tasks` move: no time of theirs goes into new memory. None where
    none of them is large, or the trace has no shapes."""
    own = SelfTimes(graph).total_ns()
    spent = moved = 0
    for task in tasks & graph.select(name=_IN_PLACE, kind=TaskKind.CPU):
        shapes, dtypes = graph.shapes(task), graph.dtypes(task)
        read = sum(
            bytes_of(shape, dtypes[at] if at < len(dtypes) else "float")
            for at, shape in enumerate(shapes)
            if isinstance(shape, list) and shape
        )
        size = read + first_operand_bytes(graph, task)
        if size > _LARGE_BYTES:
            spent, moved = spent + int(own[task]), moved + size
    return spent / moved if moved else None


def changing_ns(graph: Graph, tasks: Selection) -> int:
    """Time of the operators among `tasks` that change parameters and states in place. What a plain number is added to
    is neither: it is the denominator of an update, which is new each time."""
    own = SelfTimes(graph).total_ns()
    found = 0
    for task in tasks & graph.select(name=_CHANGES, kind=TaskKind.CPU):
        operands = [shape for shape in graph.shapes(task) if shape]
        number = _BY_A_NUMBER.match(graph.names[graph.column("name")[task]]) and len(operands) < 2
        if operands and not number:
            found += int(own[task])
    return found
