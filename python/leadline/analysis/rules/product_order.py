"""Part of `redundant_work`: a product of three matrices in the order that takes many times as much arithmetic.

By shapes (`leadline why`, `--shapes`). `(q @ k.T) @ v` writes a matrix of all pairs, `q @ (k.T @ v)` does not; they are
equal as long as nothing but sums, views and scalars comes between: a softmax or a mask rules it out. So does whatever
else is done, anywhere, to a tensor with as many elements, since its sizes may be others.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import Shape, largest, shapes_of
from leadline.schema import FrameKind
from leadline.units import percent, times

_PRODUCTS = ("aten::mm", "aten::bmm")
_LINEAR = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "mm",
            "bmm",
            "matmul",
            "einsum",
            "sum",
            "mean",
            "view",
            "_unsafe_view",
            "reshape",
            "_reshape_alias",
            "expand",
        ),
        *("transpose", "t", "permute", "contiguous", "clone", "copy_", "unsqueeze", "squeeze", "select", "slice"),
        *("as_strided", "detach", "empty_like", "to", "_to_copy", "neg", "resolve_conj", "movedim", "flatten"),
    )
)
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
    rows = [
        row for row in largest(case, products & (case.code_function >= 0)).tolist() if len(shapes_of(case, row)) == 2
    ]
    best: Finding | None = None
    by_function: dict[int, list[int]] = {}
    for row in rows:
        by_function.setdefault(int(case.code_function[row]), []).append(row)
    changed = _changed(case) if by_function else frozenset()
    for several in by_function.values():
        for pair in _pairs(case, several):
            concerned = np.array([row for row in several if _has(case, row, pair)], np.int64)
            ns = int(case.cost_with_all_below[concerned].sum())
            share = ns / max(case.cost_of_all, 1)
            if share >= _LEAST and (best is None or share > best.weight) and pair.elements not in changed:
                best = _finding(case, rule, learn_more, pair, concerned, ns)
    return [] if best is None else [best]


def _pairs(case: Case, rows: list[int]) -> list[_Pair]:
    found: dict[tuple[Shape, ...], _Pair] = {}
    for first, second in itertools.permutations(rows, 2):
        (*_, (m, k)), (*_, (_, n)) = _matrices(case, first)
        left, right = _matrices(case, second)[0][-1], _matrices(case, second)[1][-1]
        made = (m, n)
        elements = m * n * math.prod(shapes_of(case, first)[0][:-2])
        if left == made:
            pair = _Pair(first, second, made, elements, m * n * (k + right[1]), k * right[1] * (n + m))
        elif right == made:
            pair = _Pair(first, second, made, elements, m * n * (k + left[0]), left[0] * k * (m + n))
        else:
            continue
        if pair.now >= _TIMES * pair.other:
            found.setdefault((made, left, right), pair)
    return list(found.values())


def _matrices(case: Case, row: int) -> list[list[tuple[int, int]]]:
    return [[(int(shape[-2]), int(shape[-1]))] for shape in shapes_of(case, row)]


def _has(case: Case, row: int, pair: _Pair) -> bool:
    """Whether a product makes the matrix or takes it."""
    left, right = (matrix[-1] for matrix in _matrices(case, row))
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
        case.gain_of(rows, ns, (0.3 * spared, 0.8 * spared, 1), "judged: the arithmetic of the other order"),
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
