"""What calling an operator costs in this trace, with what its recorder adds: told by operators that move no data.

A view or an allocation only dispatches, and a node of autograd only calls operators, so their times are those of calls.
An operator pays for itself and for each that it calls.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import BoolArray, IntArray, TaskKind
from leadline.whatif.selftime import PYTHON, SelfTimes

_VIEWS = (
    "_reshape_alias|_unsafe_view|adjoint|alias|as_strided_?|broadcast_to|chunk|detach_?|diagonal|expand|expand_as|flatten"
    "|lift_fresh|movedim|mH|mT|narrow|numpy_T|permute|ravel|real|imag|reshape|reshape_as|resolve_conj|resolve_neg|select"
    "|set_|slice|split|split_with_sizes|squeeze_?|swapaxes|swapdims|t_?|tensor_split|transpose_?|unbind|unflatten|unfold"
    "|unsafe_chunk|unsafe_split|unsafe_split_with_sizes|unsqueeze_?|view|view_as|view_as_complex|view_as_real"
)
_ALLOCATIONS = "empty|empty_like|empty_strided|new_empty|new_empty_strided|resize_|resize_as_"
_ASKS = "is_nonzero|item|_local_scalar_dense|result_type|_has_same_storage_numel|can_cast"
_NO_DATA = re.compile(rf"^aten::({_VIEWS}|{_ALLOCATIONS}|{_ASKS})$")
_NODE = re.compile(r"^(autograd::engine::|torch::autograd::CopySlices)|^[A-Za-z_]\w*Backward\d*$")
"""Nodes of autograd by the names that its engine gives them; what they compute is operators of their own."""
_FEW = 5


@dataclass(frozen=True)
class CallCost:
    """Nanoseconds of CPU time. `leaf`: an operator that moves no data and calls no other; `inner`: what each operator
    called adds to the one around it. None: the trace has too few of them to tell."""

    leaf: float | None
    inner: float | None


def moves_nothing(graph: Graph) -> BoolArray:
    """By name: whether tasks of the name do no arithmetic on tensors themselves."""
    return np.array([bool(_NO_DATA.match(name) or _NODE.match(name)) for name in graph.names], dtype=np.bool_)


def inner_calls(graph: Graph) -> IntArray:
    """How many operators each task calls itself."""
    kind, parent = graph.column("kind"), graph.column("parent")
    called = graph.alive & (kind == TaskKind.CPU) & (parent >= 0)
    if PYTHON in graph.names:
        called &= graph.column("name") != graph.names.index(PYTHON)
    found: IntArray = np.bincount(parent[called], minlength=len(graph))
    return found


def call_cost(graph: Graph) -> CallCost:
    """What calls cost in a graph."""
    own = SelfTimes(graph).total_ns()
    calls, name = inner_calls(graph), graph.column("name")
    idle = moves_nothing(graph)[name] & graph.alive & (graph.column("kind") == TaskKind.CPU)
    leaf = _median(own[idle & (calls == 0)])
    nodes = idle & (calls > 0) & np.array([bool(_NODE.match(text)) for text in graph.names], dtype=np.bool_)[name]
    inner = _median(np.maximum(own[nodes] - (leaf or 0.0), 0.0) / calls[nodes])
    return CallCost(leaf, inner)


def _median(values: NDArray[np.float64] | IntArray) -> float | None:
    return float(np.median(values)) if values.size >= _FEW else None
