"""`forward_backward`: an operator whose backward pass takes far longer than its forward (DeepContext, analysis 3)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import factorized, group_sums
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.waiting import in_line_ns
from leadline.schema import FrameKind
from leadline.units import duration, percent, times
from leadline.work.operators import class_of_operator

_DEARER = frozenset(
    ("matrix product", "convolution", "attention", "recurrent", "normalisation", "transform", "decomposition")
)
"""Classes of operators with gradients of two inputs, or whose gradient solves systems of its own: slower by nature."""
_SPREADS = frozenset(
    f"aten::{name}" for name in ("mean", "sum", "expand", "relu", "square", "pow", "norm", "std", "var")
)
"""Their gradient is as large as the input, or writes what the value only read: slower by nature."""
_SEEN = 1000
"""A forward pass that takes less than one part in so many is not what the backward pass belongs to."""
_CROWDED = 0.3
"""Of the step in line for a core: how long operators take says nothing of them then."""
_HOOKS = "BackwardHookFunction"
"""Marks where hooks of a module run; it computes nothing itself."""


class ForwardBackward(Rule):
    name = "forward_backward"
    asks = "Is there an operator whose backward pass takes several times its forward pass?"
    general = True
    options = (
        Option("ratio", 2, "1", "the paper's bound; a gradient takes as much work as its value"),
        Option(
            "products",
            10,
            "1",
            "two gradients, or systems to solve; healthy models showed 2.3 to 8",
        ),
        Option("share", 15, "%", "ratios of operators that take little time mean nothing"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        backward_of_all = case.named(FrameKind.PHASE, "backward") & case.loop.inside
        phases = case.first_of(backward_of_all)
        if not phases.any():
            raise CannotTell("no backward pass was measured")
        if case.share(in_line_ns(case.tree, case.on_own_thread)) > _CROWDED:
            raise CannotTell("its thread waits for a core, wherever it is")
        tree, scopes = case.tree, case.analysis.scopes
        whole = case.cost_with_all_below
        rows = np.flatnonzero(phases)
        owner = scopes.outer[np.maximum(tree.shape.parent[rows], 0)]
        rows, owner = rows[owner >= 0], owner[owner >= 0]
        # Gradients of gradients are asked for, and say nothing of the operator.
        again = np.flatnonzero(case.first_of(backward_of_all & ~phases))
        higher = group_sums(case.outermost(backward_of_all)[again], whole[again], len(tree))
        backward = group_sums(owner, whole[rows] - higher[rows], len(tree))
        everything = group_sums(owner, whole[rows], len(tree))
        forward = np.maximum(whole - everything, 0)
        names = tree.frames["name"][tree.frame_of].astype(np.int64)
        made = []
        for group in case.grouped(backward > 0, backward, factorized(case.user_line, names)):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            before = int(forward[group.rows].sum())
            if before * _SEEN < group.value:
                continue
            ratio = group.value / max(before, 1)
            operator = case.name(group.row)
            limit = values["products"] if class_of_operator(operator) in _DEARER else values["ratio"]
            if ratio < limit or operator in _SPREADS or operator == _HOOKS:
                continue
            made.append(
                Finding(
                    self.name,
                    Severity.INFO,
                    f"The backward pass of {operator} takes {times(ratio)} times its forward pass",
                    case.gain(max(group.value - before, 0), (0, 0, 1), "bound: as fast backward as forward"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(before))} forward, {duration(case.per_step(group.value))} backward a "
                        f"step, {percent(share)} of {case.cost_name}",
                    ),
                    "See what the gradient does with `leadline report --focus`; often another operator with the same "
                    "result has a cheaper one.",
                    self.learn_more,
                    share,
                )
            )
        return made[:2]
