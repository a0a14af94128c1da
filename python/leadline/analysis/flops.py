"""Floating-point operations from the shapes of operators: two per multiplication and addition, as torch's own counter
(`torch.utils.flop_counter`) counts them, and what that counter leaves out (attention on a CPU, grouped products).

An operator counts once: the outermost one with a formula, and nothing below it, since composite operators are made of
others that have formulas too. Backward work hangs below its forward operator and counts for itself. Element-wise work,
reductions and the optimizer are in no formula. A causal mask halves nothing, as the operators are given no shape of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Rows, at_rows, nearest
from leadline.profiles import Tree
from leadline.schema import FrameKind
from leadline.whatif.roofline import convolution_output, convolution_work, work_of

Shape = Sequence[int]
PRECISIONS: Mapping[str, str] = {
    "double": "fp64", "float": "fp32", "c10::Half": "fp16", "c10::BFloat16": "bf16", "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8", "c10::Float8_e4m3fnuz": "fp8", "c10::Float8_e5m2fnuz": "fp8",
}  # fmt: skip


@dataclass(frozen=True)
class FlopColumns:
    """Per node. `per_call`: operations of one call, 0 where another node counts them or none does; `owner`: the node
    that counts for this one, -1 for none; `precision`: of the inputs, as `Gpu.peak_flops` names it, "" if unknown.
    `recomputed`: work of the forward pass done again inside the backward pass."""

    per_call: NDArray[np.float64]
    owner: Rows
    precision: tuple[str, ...]
    recomputed: NDArray[np.bool_]
    uncounted: tuple[str, ...]
    """Operators that have a formula of which the shapes did not tell, by name."""

    @property
    def known(self) -> bool:
        return bool(self.per_call.any())


def flops_of(operator: str, detail: Mapping[str, Any]) -> float | None:
    """Operations of one call of an operator with that detail (`shapes`, `arguments`); None for one without a formula,
    0 for one with a formula that the shapes do not tell."""
    formula = _FORMULAS.get(operator)
    if formula is None:
        return None
    try:
        return float(formula(detail.get("shapes") or [], detail.get("arguments") or []))
    except (IndexError, TypeError, ValueError, AttributeError):
        return 0.0


def flop_columns(tree: Tree) -> FlopColumns:
    """The columns of a tree that was measured with shapes; nothing but zeros where it was not."""
    kinds, frames = tree.kinds, tree.frames
    per_frame = np.full(len(frames["kind"]), -1.0)
    precision_of_frame: dict[int, str] = {}
    uncounted: set[str] = set()
    for frame in np.flatnonzero(frames["kind"] == int(FrameKind.OPERATOR)).tolist():
        name = tree.text("name", frame)
        if name not in _FORMULAS or not tree.text("detail", frame):
            continue
        detail = _parsed(tree.text("detail", frame))
        if "shapes" not in detail:
            continue
        count = flops_of(name, detail) or 0.0
        if count <= 0 and any(math.prod(shape) for shape in detail["shapes"] if shape):
            uncounted.add(name)
            continue
        per_frame[frame] = count
        precision_of_frame[frame] = _precision(detail)
    counts = per_frame[tree.frame_of]
    has = (kinds == int(FrameKind.OPERATOR)) & (counts >= 0)
    owner = _owners(tree, has)
    own = owner == np.arange(len(tree))
    # the innermost says in what precision: outside, autocast has not converted anything yet
    precisions = {int(owner[row]): precision_of_frame[int(tree.frame_of[row])] for row in np.flatnonzero(has).tolist()}
    column = [""] * len(tree)
    for row, found in precisions.items():
        column[row] = found
    return FlopColumns(
        np.where(own & has, counts, 0.0), owner, tuple(column), _recomputed(tree), tuple(sorted(uncounted))
    )


def _owners(tree: Tree, has: NDArray[np.bool_]) -> Rows:
    """Per node the outermost one with a formula at or above it that no phase, thread or process parts from it."""
    kinds = tree.kinds
    borders = np.isin(kinds, [int(kind) for kind in (FrameKind.PHASE, FrameKind.THREAD, FrameKind.PROCESS)])
    owner = np.full(len(tree), -1, np.int64).tolist()
    parent, starts, has_list = tree.shape.parent.tolist(), borders.tolist(), has.tolist()
    for row in range(len(tree)):  # parents come before their children
        above = owner[parent[row]] if row and not starts[row] else -1
        owner[row] = above if above >= 0 else row if has_list[row] else -1
    return np.array(owner, np.int64)


def _recomputed(tree: Tree) -> NDArray[np.bool_]:
    """Nodes below a line of torch's checkpointing that the backward pass called, before any backward pass of theirs."""
    kinds, files = tree.kinds, tree.frames["file"]
    ours = {
        row: tree.tables.strings[row].replace("\\", "/").endswith("torch/utils/checkpoint.py")
        for row in np.unique(files).tolist()
    }
    checkpoint = np.array([ours[row] for row in files.tolist()], np.bool_)[tree.frame_of]
    checkpoint &= kinds == int(FrameKind.PYTHON)
    backward = tree.frame_rows(FrameKind.PHASE, "backward")[tree.frame_of]
    borders = np.isin(kinds, [int(FrameKind.THREAD), int(FrameKind.PROCESS)])
    marks = nearest(tree.shape, checkpoint | backward | borders)
    inside: NDArray[np.bool_] = at_rows(checkpoint, marks, 0) > 0
    # the checkpoint itself must stand below a backward phase of this thread
    outer = nearest(tree.shape, backward | borders)
    inside &= at_rows(backward, outer, 0) > 0
    return inside


def _precision(detail: Mapping[str, Any]) -> str:
    types = [kind for kind in detail.get("types") or [] if isinstance(kind, str)]
    return next((PRECISIONS[kind] for kind in types if kind in PRECISIONS), "")


@lru_cache(maxsize=65536)
def _parsed(text: str) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# ---------------------------------------------------------------- formulas


def _by_shapes(name: str) -> Callable[[list[Shape], list[Any]], float]:
    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        work = work_of(name, shapes)
        return 0.0 if work is None else work.flops

    return formula


def _grouped(shapes: list[Shape], arguments: list[Any]) -> float:
    """Rows of the first belong to one group each: (rows, k) by (groups, k, n); every other form multiplies the same
    sizes once."""
    left, right = shapes[0], shapes[1]
    if len(left) == 3 and len(right) == 3:
        return 2.0 * math.prod(left) * right[2]
    return 2.0 * left[-2] * left[-1] * right[-1]


def _convolution(shapes: list[Shape], arguments: list[Any]) -> float:
    image, weight = shapes[0], shapes[1]
    if arguments[6]:  # transposed: every input place is multiplied with the whole filter
        return 2.0 * image[0] * math.prod(image[2:]) * math.prod(weight)
    return convolution_work(
        image, weight, convolution_output(image, weight, arguments[3], arguments[4], arguments[5])
    ).flops


def _convolution_backward(shapes: list[Shape], arguments: list[Any]) -> float:
    gradient, image, weight = shapes[0], shapes[1], shapes[2]
    wanted = arguments[10]
    places = image if arguments[7] else gradient
    return 2.0 * places[0] * math.prod(places[2:]) * math.prod(weight) * (bool(wanted[0]) + bool(wanted[1]))


def _attention(query: Shape, key: Shape, value: Shape, *, backward: bool) -> float:
    """Scores and values: (batch, heads, rows, width). Backward computes the scores again (Dao et al. 2022)."""
    batch, heads, rows, width = query
    scores, values = 2.0 * width, 2.0 * value[3]
    each = 3 * scores + 2 * values if backward else scores + values
    return each * batch * heads * rows * key[2]


def _heads_first(first: int, *, backward: bool) -> Callable[[list[Shape], list[Any]], float]:
    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        return _attention(*shapes[first : first + 3], backward=backward)

    return formula


def _rows_first(first: int, *, backward: bool) -> Callable[[list[Shape], list[Any]], float]:
    """(batch, rows, heads, width); without a batch the lengths are in no shape."""

    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        turned = [[shape[0], shape[2], shape[1], shape[3]] for shape in shapes[first : first + 3]]
        return _attention(*turned, backward=backward)

    return formula


_SDPA = "aten::_scaled_dot_product_"
_FORMULAS: Mapping[str, Callable[[list[Shape], list[Any]], float]] = {
    **{f"aten::{name}": _by_shapes(name) for name in ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "linear")},
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    **{
        f"{_SDPA}{kind}": _heads_first(0, backward=False)
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
    },
    **{
        f"{_SDPA}{kind}_backward": _heads_first(1, backward=True)
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
    },
    "aten::_flash_attention_forward": _rows_first(0, backward=False),
    "aten::_flash_attention_backward": _rows_first(1, backward=True),
    "aten::_efficient_attention_forward": _rows_first(0, backward=False),
    "aten::_efficient_attention_backward": _rows_first(1, backward=True),
    "flash_attn::_flash_attn_forward": _rows_first(0, backward=False),
    "flash_attn::_flash_attn_backward": _rows_first(1, backward=True),
}
"""Names and argument order as in torch 2.13 (native_functions.yaml) and flash-attn 2.8."""
