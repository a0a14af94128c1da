"""Floating-point operations from the shapes of operators: two per multiplication and addition, as torch's own counter
(`torch.utils.flop_counter`) counts them, and what that counter leaves out (attention on a CPU, grouped products).

An operator counts once: the outermost one with a formula, and nothing below it, since composite operators are made of
others that have formulas too. Backward work hangs below its forward operator and counts for itself. Element-wise work,
reductions and the optimizer are in no formula. A causal mask halves nothing, as the operators are given no shape of it.
Kernels that torch.compile made from a template (attention, products) count by the graph node that they compute. What
compilation itself runs (on stand-ins without data, or to compare kernels) is no work of the program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, replace
from leadline.analysis.columns import Rows, at_rows, nearest
from leadline.analysis.flopformulas import FORMULAS, Bounds
from leadline.profiles import Tree
from leadline.schema import FrameKind

PRECISIONS: Mapping[str, str] = {
    "double": "fp64", "float": "fp32", "c10::Half": "fp16", "c10::BFloat16": "bf16", "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8", "c10::Float8_e4m3fnuz": "fp8", "c10::Float8_e5m2fnuz": "fp8",
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
}  # fmt: skip
"""As torch's operators write them, and as graphs of its compiler do."""
_CALLED = (FrameKind.OPERATOR, FrameKind.REGION, FrameKind.KERNEL)


@dataclass(frozen=True)
class FlopColumns:
    """Per node. `per_call`: operations of one call, 0 where another node counts them or none does; `unsure`: how far
    the truth can lie above or below; `calls`: how many of them; `owner`: the node that counts for this one, -1 for
    none; `precision`: of the inputs, as `Gpu.peak_flops` names it, "" if unknown. `recomputed`: work of the forward
    pass done again inside the backward pass."""

    per_call: NDArray[np.float64]
    unsure: NDArray[np.float64]
    calls: NDArray[np.float64]
    owner: Rows
    precision: tuple[str, ...]
    recomputed: NDArray[np.bool_]
    ends: Rows
    """Nodes at which recomputation has left an operator that then did no work (see `worked`)."""
    ended: Rows
    """The nodes that count for these operators, as many."""
    uncounted: tuple[str, ...]
    """Operators that have a formula of which the shapes did not tell, by name."""

    def worked(self, calls: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of calls per node those that did their work."""
        made = calls.copy()
        np.subtract.at(made, self.ended, calls[self.ends])
        return np.maximum(made, 0.0)

    @property
    def known(self) -> bool:
        return bool(self.per_call.any())


def flops_of(operator: str, detail: Mapping[str, Any]) -> Bounds | None:
    """The least and the most operations of one call of an operator with that detail (`shapes`, `arguments`); None for
    one without a formula, zeros for one with a formula that the shapes do not tell."""
    formula = FORMULAS.get(operator)
    if formula is None:
        return None
    try:
        found = formula(detail.get("shapes") or [], detail.get("arguments") or [])
    except (IndexError, TypeError, ValueError, AttributeError):
        return 0.0, 0.0
    return found if isinstance(found, tuple) else (float(found), float(found))


def flop_columns(tree: Tree) -> FlopColumns:
    """The columns of a tree that was measured with shapes; nothing but zeros where it was not."""
    kinds, frames = tree.kinds, tree.frames
    middle = np.full(len(frames["kind"]), -1.0)
    unsure = np.zeros(len(middle))
    precision_of_frame: dict[int, str] = {}
    uncounted: set[str] = set()
    for frame in np.flatnonzero(np.isin(frames["kind"], [int(kind) for kind in _CALLED])).tolist():
        name = tree.text("name", frame)
        for operator, detail in _computed(name, tree.text("detail", frame)):
            least, most = flops_of(operator, detail) or (0.0, 0.0)
            if most <= 0 and any(math.prod(shape) for shape in detail["shapes"] if shape):
                uncounted.add(name)
                continue
            middle[frame] = max(middle[frame], 0.0) + (least + most) / 2
            unsure[frame] += (most - least) / 2
            precision_of_frame[frame] = _precision(detail)
        if "flex_attention" in name and middle[frame] < 0:
            uncounted.add(name)  # of a cache that was filled unobserved, which does not tell what it computes
    counts = middle[tree.frame_of]
    has = np.isin(kinds, [int(kind) for kind in _CALLED]) & (counts >= 0) & ~below_compilation(tree)
    owner = _owners(tree, has)
    own = (owner == np.arange(len(tree))) & has
    # the innermost says in what precision: outside, autocast has not converted anything yet
    precisions = {int(owner[row]): precision_of_frame[int(tree.frame_of[row])] for row in np.flatnonzero(has).tolist()}
    column = [""] * len(tree)
    for row, found in precisions.items():
        column[row] = found
    launched = kinds == int(FrameKind.KERNEL)
    calls = np.where(launched, tree.exclusive("gpu_time").count, tree.exclusive("call_time").count)
    ends, ended = _ends(tree, owner)
    columns = FlopColumns(
        per_call=np.where(own, counts, 0.0),
        unsure=np.where(own, unsure[tree.frame_of], 0.0),
        calls=calls.astype(np.float64),
        owner=owner,
        precision=tuple(column),
        recomputed=_recomputed(tree),
        ends=ends,
        ended=ended,
        uncounted=tuple(sorted(uncounted)),
    )
    return replace(columns, calls=columns.worked(columns.calls))


def _computed(name: str, text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The operators that a frame's calls compute, with their details: itself, or what a generated kernel stands for."""
    detail = _parsed(text) if text and (name in FORMULAS or '"work"' in text) else {}
    if "shapes" in detail:
        return [(name, detail)] if name in FORMULAS else []
    work = detail.get("work") or []
    return [(str(one.get("operator")), one) for one in work if one.get("shapes")]


def below_compilation(tree: Tree) -> NDArray[np.bool_]:
    """Nodes in or below the phase in which a compiler works."""
    inside: NDArray[np.bool_] = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    return inside


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


def _ends(tree: Tree, owner: Rows) -> tuple[Rows, Rows]:
    rows = np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "recomputation ends")[tree.frame_of])
    rows = rows[owner[tree.shape.parent[rows]] >= 0]
    return rows, owner[tree.shape.parent[rows]]


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
