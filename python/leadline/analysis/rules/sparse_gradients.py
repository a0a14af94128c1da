"""Part of `unused_gradients`: what has to change before an embedding's gradients can be sparse, if they can."""

from __future__ import annotations

import ast

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import lines_that_call, user_trees
from leadline.analysis.rules.base import Case
from leadline.analysis.rules.by_shape import shapes_of
from leadline.schema import FrameKind

_CLIPPING = r"/torch/(?:nn/utils/clip_grad|distributed/fsdp/.*)\.py$"
_CLIPS = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_gradients")
_DECAYS = ("AdamW", "Lamb", "LAMB", "Lion")
"""Optimizers that apply weight decay by default."""
_SHARDED = r"^(?:c10d|_c10d_functional)::\w*reduce_scatter"
_REDUCED = r"^(?:c10d|_c10d_functional)::\w*all_?reduce"


@dataclass(frozen=True)
class Sparse:
    """`possible`: whether a known part of the program rules them out; `changes`: what to do beside `sparse=True`, as
    instructions; each of them changes what the training computes."""

    possible: bool
    changes: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        first = f"{', '.join(self.changes)}, and use" if self.changes else "use"
        use = (
            f"{first} nn.Embedding(..., sparse=True) with its own optimizer (torch.optim.SparseAdam, SGD or Adagrad), "
            "so that only gradients of rows in use are computed and applied."
        )
        return (
            f"{use[:1].upper()}{use[1:]} Weights shared with an output layer have a dense gradient anyway; "
            "clipping (clip_grad_norm_, clip_grad_value_) and weight_decay raise an error on sparse gradients."
        )


def sparse_gradients(case: Case, embedding: int) -> Sparse:
    """Of the embedding at this node, its forward operator."""
    pattern = f"{_SHARDED}|{_REDUCED}" if case.has_device else _SHARDED
    reduced = case.matching(FrameKind.OPERATOR, pattern) & case.loop.inside
    if reduced.any() or lines_that_call(case, (), keyword="scale_grad_by_freq"):
        return Sparse(possible=False)  # NCCL and sharded parameters know dense gradients only
    changes = []
    if _clipped(case, embedding):
        changes.append("Leave its gradient out of clipping (which fails on sparse ones)")
    if _decays(case):
        changes.append("give it no weight decay (sparse optimizers refuse it)")
    return Sparse(possible=True, changes=tuple(changes))


def _clipped(case: Case, embedding: int) -> bool:
    """Whether the steps clip its gradient: by the shapes that clipping works on, where they are known; else any."""
    clips = case.in_files(_CLIPPING) & case.loop.inside & (case.tree.kinds == int(FrameKind.OPERATOR))
    if not clips.any():
        return bool(lines_that_call(case, _CLIPS))
    weight = next(iter(shapes_of(case, embedding)), None)
    seen = [shapes[0] for row in np.flatnonzero(clips).tolist() if (shapes := shapes_of(case, row)) and shapes[0]]
    return not weight or not any(len(one) > 1 for one in seen) or weight in seen


def _decays(case: Case) -> bool:
    """Whether an optimizer is given weight decay, or decays unless it is given none."""
    given = [
        one.value
        for _, tree in user_trees(case)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for one in node.keywords
        if one.arg == "weight_decay"
    ]
    if given:
        return any(not (isinstance(one, ast.Constant) and not one.value) for one in given)
    phases = np.flatnonzero(case.named(FrameKind.PHASE, "optimizer") & case.loop.inside)[:50]
    return any(case.tree.node(row).detail.get("optimizer") in _DECAYS for row in phases.tolist())
