"""`cpu_threads`: another number of threads per operator (torch.set_num_threads), for work on the CPU.

An operator is split when it is large enough: element-wise operators, reductions and normalisations into pieces of at
least 32,768 elements (at::internal::GRAIN_SIZE), matrix products and convolutions when they take longer than starting
the threads. Each split costs a start and a wait for the last thread. Everything else, Python first, stays.
"""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.draws import Draw, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Selection, TaskKind
from leadline.whatif.layerwork import worker_kinds
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count, require_positive
from leadline.whatif.selftime import PYTHON, SelfTimes
from leadline.whatif.units import Unit

GRAIN = 32_768
_PRODUCT = re.compile(r"^aten::(addmm|mm|bmm|baddbmm|mkldnn_\w+|\w*convolution\w*|\w*scaled_dot_product\w*)$")
_PIECES = re.compile(
    r"^aten::(_foreach_)?(add|sub|mul|div|lerp|addcmul|addcdiv|sqrt|exp|log|clamp\w*|relu|gelu|silu|sigmoid|tanh|threshold"
    r"|copy|fill|zero|where|sum|mean|\w*softmax\w*|native_(layer|batch|group)_norm|index_select|embedding)"
    r"(_backward)?(_data)?_?$"
)


_CACHE_BYTES = 32 << 20
"""A tensor beyond this is in no processor's share of a cache; its operators wait for memory."""


class CpuThreads(Scenario):
    """Divides the time of large CPU operators by what more threads give."""

    name = "cpu_threads"
    advice = "use another number of threads (torch.set_num_threads)"
    parameters = (
        Parameter("threads", Unit.COUNT, "threads per operator afterwards"),
        Parameter("current_threads", Unit.COUNT, "threads per operator in the traced run", "1"),
        Parameter("scaling", Unit.FACTOR, "how many times faster one large operator becomes, where that was measured"),
    )

    def title(self, values: Values) -> str:
        threads = values.optional("threads")
        return self.name if threads is None else f"{self.name} threads={threads:g}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if worker_kinds(graph) == (TaskKind.GPU,):
            return "the work of this trace is on a device"
        if values.optional("threads") is None:
            return "the number of threads is not given (--set threads=8)"
        return None if _operators(graph) else "the window has no operators"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        require_positive(self.name, values, ["threads", "current_threads"])
        after, before = values.number("threads"), values.number("current_threads")
        share = technique("cpu_thread_scaling", larger_is_faster=True).at(draw)
        start = technique("cpu_fork_join_ns", larger_is_faster=False).at(draw)
        measured = values.optional("scaling")
        tasks = _operators(graph)
        times = SelfTimes(graph)
        own = times.total_ns()[tasks.ids].astype(np.float64)
        pieces = _pieces(graph, tasks, own, start)
        # element-wise operators on large tensors share the memory's bandwidth
        roof = technique("cpu_memory_threads", larger_is_faster=True).at(draw)
        streams = _streams(graph, tasks)
        most = np.where(streams, np.maximum(roof, before), np.inf)
        gain = _speed(np.minimum(np.minimum(after, pieces), most), share) / _speed(np.minimum(before, pieces), share)
        if measured is not None:
            gain = np.where(pieces >= max(after, before), measured, np.where(pieces > 1, gain, 1.0))
        joins = (np.minimum(after, pieces) > 1).astype(float) - (np.minimum(before, pieces) > 1)
        new = np.where(gain == 1.0, own, np.maximum(own / gain + start * joins, 0.0))
        times.scale(tasks, new / np.maximum(own, 1.0))
        large = measured or float(_speed(after, share) / _speed(before, share))
        assumptions = (
            f"{before:g} threads before; large operators become {large:.3g} times faster, on their own cores",
            f"an operator that is split costs {start / 1000:.3g} µs more; small operators, Python and loading stay",
        )
        return Applied(graph, assumptions, count(operators=int((gain != 1.0).sum())))


def _operators(graph: Graph) -> Selection:
    return graph.select(kind=TaskKind.CPU) - graph.select(name=f"^{re.escape(PYTHON)}$")


def _streams(graph: Graph, tasks: Selection) -> NDArray[np.bool_]:
    """Operators that do little with each byte, on tensors too large for the processor's caches."""
    light = np.array([_PIECES.match(name) is not None for name in graph.names], dtype=np.bool_)
    found: NDArray[np.bool_] = light[graph.column("name")[tasks.ids]]
    for at in np.flatnonzero(found).tolist():
        found[at] = _elements(graph, int(tasks.ids[at])) * 4 > _CACHE_BYTES
    return found


def _speed(threads: float | NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Rate of an operator on so many threads, over that on one."""
    rate: NDArray[np.float64] = 1 + (np.asarray(threads, dtype=np.float64) - 1) * share
    return rate


def _pieces(graph: Graph, tasks: Selection, own: NDArray[np.float64], start_ns: float) -> NDArray[np.float64]:
    """Into how many threads' work each operator can be split; 1 for those that are not."""
    product = np.array([_PRODUCT.match(name) is not None for name in graph.names], dtype=np.bool_)
    light = np.array([_PIECES.match(name) is not None for name in graph.names], dtype=np.bool_)
    names = graph.column("name")[tasks.ids]
    found = np.where(product[names] & (own > 2 * start_ns), np.inf, 1.0)
    for at in np.flatnonzero(light[names]).tolist():
        found[at] = max(1.0, math.ceil(_elements(graph, int(tasks.ids[at])) / GRAIN))
    return found


def _elements(graph: Graph, task: int) -> int:
    """Elements of the largest operand, of all tensors of a list; 0 without shapes."""
    shapes = graph.shapes(task) if graph.detail(task) else []
    return max((_count(shape) for shape in shapes if isinstance(shape, list) and shape), default=0)


def _count(shape: list[object]) -> int:
    if any(isinstance(axis, list) for axis in shape):
        return sum(_count(part) for part in shape if isinstance(part, list) and part)
    return math.prod(axis for axis in shape if isinstance(axis, int))
