"""What of a CPU operator's time grows with the batch.

Calls cost the same for any batch, and so does what goes through tensors as large as a parameter: gradients that are
cleared or added up, and weights that a product reads and packs for its kernel. Operators that only make views or call
others do nothing that could grow.
"""

from __future__ import annotations

import re
from typing import cast

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif.callcost import call_cost, inner_calls, moves_nothing
from leadline.whatif.draws import Draw, Range
from leadline.whatif.elementwise import cpu_nanoseconds_per_byte
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.model import ACCUMULATE
from leadline.whatif.selftime import SelfTimes

_MOST_CALL_NS = 10_000.0
_SUMS = re.compile(r"^aten::(add|add_|clone|copy_|fill_|zero_|zeros|zeros_like|new_zeros)$")
"""What autograd does with gradients of parameters."""
_WEIGHTS_AT = {"aten::mkldnn_convolution": 1, "aten::convolution_backward": 2, "aten::thnn_conv2d": 1}


@dataclass(frozen=True)
class Growth:
    """`own_ns`: own times of the asked tasks; `growing_ns`: what of them grows; `call_ns`: what a call was taken to
    cost."""

    own_ns: NDArray[np.float64]
    growing_ns: NDArray[np.float64]
    call_ns: float


def growth(graph: Graph, tasks: Selection, times: SelfTimes, draw: Draw) -> Growth:
    """What of the own times of CPU tasks grows with the batch, by task in id order."""
    own = times.total_ns()[tasks.ids].astype(np.float64)
    if not own.size:
        return Growth(own, own, 0.0)
    cost = call_cost(graph)
    calls = inner_calls(graph)[tasks.ids]
    idle = moves_nothing(graph)[graph.column("name")[tasks.ids]]
    inside = (cost.inner or 0.0) * calls
    alone = own[~idle & (calls == 0)]  # of others nobody knows what is theirs
    call = _call_ns(alone if alone.size else np.maximum(own - inside, 0.0)[~idle], cost.leaf, draw)
    fixed = call + inside
    constant = idle | _of_parameters(graph, tasks)
    fixed += _weight_ns(graph, tasks, draw)
    return Growth(own, np.where(constant, 0.0, np.maximum(own - fixed, 0.0)), call)


def _call_ns(own: NDArray[np.float64], leaf: float | None, draw: Draw) -> float:
    """Cost of an operator that moves next to nothing: a low percentile of the operators of this trace, of the order of
    what one that moves nothing takes."""
    if not own.size:
        return leaf or 0.0
    percentile = Range(50, 20, 0, name="cost of a call").at(draw)
    most = _MOST_CALL_NS if leaf is None else min(Range(6, 4, 2, name="cost of a call").at(draw) * leaf, _MOST_CALL_NS)
    return float(min(np.percentile(own, percentile), most))


def _of_parameters(graph: Graph, tasks: Selection) -> NDArray[np.bool_]:
    """Tasks that only go through gradients of parameters: those that autograd adds up, and all behind the backward pass
    whose tensors are as large as parameters."""
    found = np.zeros(len(tasks), dtype=np.bool_)
    parameters = parameter_shapes(graph)
    accumulates = np.array([re.search(ACCUMULATE, name) is not None for name in graph.names], dtype=np.bool_)
    found |= accumulates[graph.column("operator")[tasks.ids]]
    sums = np.array([_SUMS.match(name) is not None for name in graph.names], dtype=np.bool_)
    clears = np.array([name in ("aten::fill_", "aten::zero_") for name in graph.names], dtype=np.bool_)
    name, phase = graph.column("name")[tasks.ids], graph.column("phase")[tasks.ids]
    asked = np.where(phase == Phase.FORWARD, clears[name], sums[name] | (phase != Phase.BACKWARD))
    for at in np.flatnonzero(asked & ~found).tolist():
        task = int(tasks.ids[at])
        shapes = [shape for shape in graph.shapes(task) if shape] if graph.detail(task) else []
        flat = [part for shape in shapes for part in (shape if isinstance(shape[0], list) else [shape])]
        found[at] = bool(flat) and all(tuple(shape) in parameters for shape in flat)
    return found


def _weight_ns(graph: Graph, tasks: Selection, draw: Draw) -> NDArray[np.float64]:
    """Time of each product for the operand or result that is as large as a parameter, at the trace's own memory speed:
    one pass to read it and one to lay it out for the kernel. The pessimistic end lets products grow as a whole."""
    found = np.zeros(len(tasks))
    parameters = parameter_shapes(graph)
    per_byte = cpu_nanoseconds_per_byte(graph)
    passes = Range(3.0, 2.0, 0.0, name="passes over weights").at(draw)
    first = {"aten::mm": 0, "aten::addmm": 1}
    asked = np.array([name in first or name in _WEIGHTS_AT for name in graph.names], dtype=np.bool_)
    name = graph.column("name")[tasks.ids]
    for at in np.flatnonzero(asked[name]).tolist():
        task, short = int(tasks.ids[at]), graph.names[name[at]]
        shapes = graph.shapes(task) if graph.detail(task) else []
        size = (
            _convolved(shapes, _WEIGHTS_AT[short], parameters)
            if short in _WEIGHTS_AT
            else _multiplied(shapes, first[short], parameters)
        )
        found[at] = 4.0 * size * per_byte * passes
    return found


def _multiplied(shapes: list[object], first: int, parameters: frozenset[tuple[int, ...]]) -> int:
    """Elements of the operand or the result of a product that is as large as a parameter; 0 for none."""
    pair = shapes[first : first + 2]
    if len(pair) < 2 or not all(isinstance(shape, list) and len(shape) == 2 for shape in pair):
        return 0
    (rows, inner), (_, columns) = cast("list[list[int]]", pair)
    sizes = [size for size in ((inner, columns), (rows, columns), (rows, inner)) if size in parameters]
    return sizes[0][0] * sizes[0][1] if sizes else 0


def _convolved(shapes: list[object], at: int, parameters: frozenset[tuple[int, ...]]) -> int:
    weights = shapes[at] if len(shapes) > at else []
    return int(np.prod(weights)) if isinstance(weights, list) and weights and tuple(weights) in parameters else 0


def parameter_shapes(graph: Graph) -> frozenset[tuple[int, ...]]:
    """Shapes of what the weight update writes and gradients are added to, and their transposes."""
    return graph.remembered(_parameter_shapes, "alive", "detail", "phase", "name")


def _parameter_shapes(graph: Graph) -> frozenset[tuple[int, ...]]:
    marks = graph.select(phase=Phase.OPTIMIZER, kind=TaskKind.CPU) | graph.select(name=ACCUMULATE)
    found: set[tuple[int, ...]] = set()
    for task in marks:
        shapes = graph.shapes(task) if graph.detail(task) else []
        first = shapes[0] if shapes and isinstance(shapes[0], list) else []
        for shape in first if first and isinstance(first[0], list) else [first]:
            if shape and all(isinstance(axis, int) for axis in shape):
                found |= {tuple(shape), tuple(reversed(shape))}
    return frozenset(found)
