"""Part of `weights_again`: a layer builds its weight from parameters at each of its calls.

By shapes (`leadline why`, `--shapes`): in the module of a product, operators compute what has the shape of its weight,
and the shape of no activation: a low-rank update that is added to the frozen weight, a weight that is dequantised.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Finding, Severity, Values
from leadline.analysis.rules.by_shape import Shape, largest, shapes_of, tensor_shapes
from leadline.analysis.rules.words import listed, operator
from leadline.units import duration, percent, times

_PHASES = ("backward", "optimizer", "recompute", "data loading", "compile")
_WEIGHT_AT = {"aten::linear": 1, "aten::matmul": 1, "aten::mm": 1, "aten::addmm": 2}
_WEIGHT_AT |= {f"aten::conv{dimensions}d": 1 for dimensions in (1, 2, 3)}
"""Products, and which of their arguments is the weight."""
_BUILDS = tuple(
    f"aten::{name}"
    for name in (
        *("mm", "matmul", "einsum", "add", "sub", "mul", "div", "where", "index_select", "gather", "kron"),
        *("dequantize", "_weight_norm"),
    )
)
"""What makes one tensor of others; a cast (autocast) or a copy builds nothing."""
_PRODUCTS = frozenset(("aten::mm", "aten::matmul", "aten::einsum"))
_LEAST = 4096
"""Elements of a weight that takes time."""


def made_weights(case: Case, rule: str, learn_more: str, values: Values, where: Mask) -> list[Finding]:
    """At most one finding: the line with most of it. `where`: nodes that may be meant."""
    scopes = case.analysis.scopes
    here = where & case.called & (scopes.module >= 0)
    for name in _PHASES:
        here &= ~case.in_phase(name)
    builders = largest(case, here & case.operators(*_BUILDS))
    if not len(builders):
        return []
    weights = _weights(case, here & np.isin(scopes.module, scopes.module[builders]))
    rows = [row for row in builders.tolist() if _result(case, row) & weights.get(int(scopes.module[row]), set())]
    makers = np.zeros(len(case.tree), np.bool_)
    makers[rows] = True
    for group in case.by_line(makers, case.inclusive_time):
        share = case.share(group.value)
        if share < values["share"]:
            break
        names = sorted({operator(case.name(int(row))) for row in group.rows.tolist()})
        layers = len(np.unique(scopes.module[group.rows]))
        calls = case.per_step(float(case.calls[group.rows].max()))
        products = bool(set(names) & _PRODUCTS)
        return [
            Finding(
                rule,
                Severity.WARNING,
                f"{case.function(group.row) or 'This line'} builds its weight from parameters at each call, "
                f"{percent(share)} of the step",
                case.gain_of(
                    group.rows, group.value, (0.4, 0.9, 1.5), "bound: making it, and the gradient of the whole weight"
                ),
                tuple(group.rows[:20].tolist()),
                case.lines([group.row]),
                (
                    f"{listed(names)} create tensors of the weight's shape, in {layers} "
                    f"module{'s' if layers > 1 else ''}, {times(calls)} time{'s' if calls != 1 else ''} each a step",
                    f"{duration(case.per_step(group.value))} a step, backward passes included; the gradient is as "
                    "large as the weight",
                ),
                (
                    "Multiply the input with the parts instead of building their product (`x @ A.T @ B.T` added to "
                    "the frozen layer); merge them once where nothing is trained."
                    if products
                    else "Build it once a step (once at all where nothing is trained) and keep it for all calls."
                ),
                learn_more,
                share,
            )
        ]
    return []


def _weights(case: Case, mask: Mask) -> dict[int, set[Shape]]:
    """Module to the shapes of its products' weights, where no activation has the same."""
    found: dict[int, set[Shape]] = {}
    for row in largest(case, mask & case.operators(*_WEIGHT_AT)).tolist():
        shapes, at = shapes_of(case, row), _WEIGHT_AT[case.name(row)]
        if len(shapes) <= at or len(shapes[at]) < 2 or math.prod(shapes[at]) < _LEAST:
            continue
        weight, given = shapes[at], shapes[at - 1]
        if len(given) == 0 or math.prod(given[:-1]) in weight:
            continue  # as many rows as the weight has: what has that shape may be an activation
        found.setdefault(int(case.analysis.scopes.module[row]), set()).update((weight, weight[::-1]))
    return found


def _result(case: Case, row: int) -> set[Shape]:
    """The shape of what an operator makes; empty where that is not known."""
    shapes = tensor_shapes(case, row)
    if not shapes:
        return set()
    if case.name(row) in _PRODUCTS:
        both = len(shapes) == 2 and all(len(one) == 2 for one in shapes)
        return {(shapes[0][0], shapes[1][1])} if both else set()
    sides = itertools.zip_longest(*(one[::-1] for one in shapes), fillvalue=1)
    return {tuple(max(side) for side in sides)[::-1]}
