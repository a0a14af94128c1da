"""Part of `redundant_work`: a product of three matrices in the order that takes many times as much arithmetic.

By shapes (`leadline why`, `--shapes`). `(q @ k.T) @ v` writes a matrix of all pairs, `q @ (k.T @ v)` does not; they are
equal as long as nothing but sums, views and scalars comes between: a softmax or a mask rules it out. So does whatever
else is done, anywhere, to a tensor with as many elements, since its sizes may be others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import Shape, largest, shapes_of
from leadline.schema import FrameKind
from leadline.units import percent, times

_PRODUCTS = ("aten::mm", "aten::bmm")
_LINEAR = frozenset((
    "aten::mm", "aten::bmm", "aten::matmul", "aten::einsum", "aten::sum", "aten::mean", "aten::view",
    "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias", "aten::expand", "aten::transpose", "aten::t",
    "aten::permute", "aten::contiguous", "aten::clone", "aten::copy_", "aten::unsqueeze", "aten::squeeze",
    "aten::select", "aten::slice", "aten::as_strided", "aten::detach", "aten::empty_like", "aten::to",
    "aten::_to_copy", "aten::neg", "aten::resolve_conj", "aten::movedim", "aten::flatten",
))  # fmt: skip
_SCALES = frozenset(("aten::mul", "aten::div", "aten::mul_", "aten::div_"))
"""With one number they are linear, too."""
_TIMES = 4.0
_LEAST = 0.1


@dataclass(frozen=True)
class _Pair:
    """Two products, of which the second takes the first one's result, of shape `made` and with so many elements
    in all; arithmetic of them, and of the other order."""

    first: int
    second: int
    made: Shape
    elements: int
    now: float
    other: float


def product_order(case: Case, rule: str, learn_more: str) -> list[Finding]:
    """At most one finding: the function that takes most in such products."""
    products = case.operators(*_PRODUCTS) & ~case.in_phase("backward") & ~case.in_phase("optimizer")
    by_function: dict[int, dict[int, list[Shape]]] = {}
    for row in largest(case, products & (case.code_function >= 0)).tolist():
        shapes = shapes_of(case, row)
        if len(shapes) == 2:
            by_function.setdefault(int(case.code_function[row]), {})[row] = shapes
    pairs = [(pair, several) for several in by_function.values() for pair in _pairs(several)]
    changed = _changed(case) if pairs else frozenset()
    best: Finding | None = None
    for pair, several in pairs:
        concerned = np.array([row for row, shapes in several.items() if _has(shapes, pair)], np.int64)
        ns = int(case.cost_with_all_below[concerned].sum())
        share = ns / max(case.cost_of_all, 1)
        if share >= _LEAST and (best is None or share > best.weight) and pair.elements not in changed:
            best = _finding(case, rule, learn_more, pair, concerned, ns)
    return [] if best is None else [best]


def _pairs(products: Mapping[int, list[Shape]]) -> list[_Pair]:
    """Of the products of a function, with the shapes of their arguments."""
    found: dict[tuple[Shape, ...], _Pair] = {}
    for (first, (a, b)), (second, (left, right)) in itertools.permutations(products.items(), 2):
        (m, k), n = a[-2:], b[-1]
        made, left, right = (m, n), left[-2:], right[-2:]
        elements = m * n * math.prod(a[:-2])
        if left == made:
            pair = _Pair(first, second, made, elements, m * n * (k + right[1]), k * right[1] * (n + m))
        elif right == made:
            pair = _Pair(first, second, made, elements, m * n * (k + left[0]), left[0] * k * (m + n))
        else:
            continue
        if pair.now >= _TIMES * pair.other:
            found.setdefault((made, left, right), pair)
    return list(found.values())


def _has(shapes: list[Shape], pair: _Pair) -> bool:
    """Whether a product makes the matrix or takes it."""
    left, right = (shape[-2:] for shape in shapes)
    return pair.made in (left, right, (left[0], right[1]))


def _changed(case: Case) -> frozenset[int]:
    """Numbers of elements of tensors to which something is done that no sum, view or scalar is."""
    operators = (case.tree.kinds == int(FrameKind.OPERATOR)) & case.loop.inside
    rows = np.flatnonzero(operators & ~case.in_phase("backward") & ~case.in_phase("optimizer"))
    found: set[int] = set()
    for row in rows.tolist():
        name = case.name(row)
        counts = [math.prod(shape) for shape in shapes_of(case, row) if shape]
        scales = name in _SCALES and sum(count > 1 for count in counts) == 1
        if name not in _LINEAR and not scales:
            found.update(counts)
    return frozenset(found)


def _finding(case: Case, rule: str, learn_more: str, pair: _Pair, rows: np.ndarray, ns: int) -> Finding:
    share = ns / max(case.cost_of_all, 1)
    spared = 1 - pair.other / pair.now
    return Finding(
        rule,
        Severity.WARNING,
        f"The order of two products makes a matrix of {list(pair.made)} between them, {percent(share)} of "
        f"{case.cost_name}",
        case.gain_of(rows, ns, (0.3 * spared, 0.8 * spared, 1), "estimate: the arithmetic of the other order"),
        tuple(rows[:20].tolist()),
        unique_lines(case.lines([pair.first, pair.second])),
        (
            f"the other order takes a {times(pair.now / pair.other)}th of the arithmetic and makes no such matrix",
            "nothing but sums, views and scalars is applied between them",
        ),
        "Multiply the small side first: (a @ b) @ c equals a @ (b @ c), as in linear attention q @ (k.T @ v).",
        learn_more,
        share,
    )
