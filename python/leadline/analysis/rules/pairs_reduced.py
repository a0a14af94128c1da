"""Part of `kernel_fusion`: tensors of all pairs, by far the largest of a step, that are made to be added up at once.

A difference that is squared and summed is a matrix of distances, a product that is summed is a matrix product: both
have operators that never write the pairs to memory.
"""

from __future__ import annotations

import math

import numpy as np

from leadline.analysis.columns import Rows
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import broadcast, tensor_shapes
from leadline.analysis.rules.words import listed
from leadline.units import percent, size

ELEMENTWISE = tuple(
    f"aten::{name}"
    for name in (
        *("add", "sub", "rsub", "mul", "div", "neg", "abs", "pow", "square", "sqrt", "rsqrt", "exp", "log", "log1p"),
        *("tanh", "sigmoid", "erf", "sin", "cos", "relu", "clamp", "clamp_min", "where", "reciprocal", "maximum"),
        *("minimum", "softplus", "silu", "gelu", "masked_fill", "addcmul", "addcdiv", "lerp", "sign"),
    )
)

_REDUCING = tuple(
    f"aten::{name}" for name in ("sum", "mean", "amax", "amin", "max", "min", "norm", "linalg_vector_norm")
)
_LARGE = 1 << 20
_REDUCED = 8
"""Times smaller is the result than what it is made of; there are that many parts to each pair."""
_OTHERS = 4
"""Times as large as anything that the step makes elsewhere: only what is broadcast grows so."""


def pairs_reduced(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the function whose own lines make the largest tensors."""
    sizes = case.tree.exclusive("alloc_bytes")
    each = np.where(sizes.count > 0, sizes.sum // np.maximum(sizes.count, 1), 0)
    forward = case.loop.inside & ~case.in_phase("backward") & (case.code_line >= 0)
    elementwise = case.operators(*ELEMENTWISE) & forward & (each >= _LARGE)
    elementwise &= case.called_directly  # functions of the framework (normalize, losses) make no pairs
    reducing = case.operators(*_REDUCING) & forward & (sizes.count > 0)
    function = case.code_function
    candidates = np.intersect1d(function[elementwise], function[reducing])
    rows = case.first_of((elementwise | reducing) & np.isin(function, candidates))
    for group in case.grouped(rows, case.cost_with_all_below, function)[:3]:
        here = function == function[group.row]
        large = int(each[elementwise & here].max(initial=0))
        small = int(each[reducing & here].max(initial=0))
        others = int(each[forward & ~(here & elementwise)].max(initial=0))
        share = group.value / max(case.cost_of_all, 1)
        if share < least or not 64 < small * _REDUCED <= large or large < _OTHERS * others:
            continue
        if not _grows(case, np.flatnonzero(elementwise & here)):
            continue
        made = int(sizes.sum[case.below(rows) & here].sum())
        kinds = sorted({case.name(int(row)) for row in group.rows.tolist()})
        return [
            Finding(
                rule,
                Severity.WARNING,
                f"{size(large)} of pairs are written to memory and reduced to {size(small)}, {percent(share)} of "
                f"{case.cost_name}",
                case.gain_of(group.rows, group.value, (0.2, 0.7, 0.98), "estimate: the operator that writes no pairs"),
                tuple(group.rows[:20].tolist()),
                case.lines([group.row]),
                (
                    f"{listed(kinds)} on what was broadcast; the largest other tensor is {size(others)}",
                    f"{size(case.per_step(made))} are allocated here a step",
                ),
                "Use torch.cdist for distances of all pairs, and matrix products (matmul, torch.einsum) for sums of "
                "products: neither writes the pairs to memory.",
                learn_more,
                share,
            )
        ]
    return []


def _grows(case: Case, rows: Rows) -> bool:
    """Whether one of these makes more than it is given, or shapes are not known."""
    shapes = [given for row in rows.tolist() if (given := tensor_shapes(case, row))]
    return not shapes or any(
        math.prod(broadcast(given)) >= _OTHERS * max(map(math.prod, given)) for given in shapes if len(given) > 1
    )
