"""Part of `redundant_work`: broadcasting makes a tensor many times as large as what it is made of.

By shapes (`leadline why`, `--shapes`). `[N]` with `[N, 1]` is an accident in most losses, where each element meets
every other one. A matrix for each row (a Jacobian, all pairs) is meant, and often needless.
"""

from __future__ import annotations

import math

import numpy as np

from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import PRODUCTS, Shape, broadcast, largest, tensor_shapes
from leadline.analysis.workclass import classes_of_nodes
from leadline.schema import FrameKind
from leadline.units import percent, times

_TIMES = 16
_ELEMENTS = 1 << 16
_LEAST = 0.1
"""Of the step: tables of distances and masks of all positions take less."""


def broadcast_larger(case: Case, rule: str, learn_more: str) -> list[Finding]:
    """At most one finding: the function that takes most with what it makes so."""
    operators = (case.tree.kinds == int(FrameKind.OPERATOR)) & case.loop.inside & (case.code_line >= 0)
    operators &= ~case.in_phase("optimizer") & ~case.in_phase("data loading")
    products = operators & np.isin(classes_of_nodes(case.tree), PRODUCTS)
    rows = largest(case, operators & ~products).tolist()
    shapes = {row: found for row in rows if (found := tensor_shapes(case, row))}
    seeds: dict[int, tuple[int, Shape]] = {}
    for row, given in shapes.items():
        result, function = broadcast(given), int(case.code_function[row])
        grown = len(given) > 1 and math.prod(result) >= max(_ELEMENTS, _TIMES * max(map(math.prod, given)))
        if grown and math.prod(result) > math.prod(seeds.get(function, (0, (0,)))[1]):
            seeds[function] = row, result
    best: Finding | None = None
    for function, (row, result) in seeds.items():
        if _made_by_a_product(case, products & (case.code_function == function), math.prod(result)):
            continue
        large = [
            other
            for other, given in shapes.items()
            if case.code_function[other] == function and max(map(math.prod, given)) >= math.prod(result)
        ]
        mask = np.zeros(len(case.tree), np.bool_)
        mask[[row, *large]] = True
        concerned = np.flatnonzero(case.first_of(mask))
        ns = int(case.inclusive_time[concerned].sum())
        share = case.share(ns)
        if share >= _LEAST and (best is None or share > best.weight):
            best = _finding(case, rule, learn_more, row, shapes[row], result, concerned, ns)
    return [] if best is None else [best]


def _made_by_a_product(case: Case, products: Mask, elements: int) -> bool:
    """Whether the function has tensors of that size anyway: the logits of a loss, the scores of all pairs."""
    for row in largest(case, products).tolist():
        given = tensor_shapes(case, row)[-2:]
        if len(given) == 2 and 2 * math.prod(given[0][:-1]) * given[1][-1] >= elements:
            return True
    return False


def _finding(
    case: Case, rule: str, learn_more: str, row: int, given: list[Shape], result: Shape, rows: np.ndarray, ns: int
) -> Finding:
    share = case.share(ns)
    both = sorted(given, key=len)[-2:]
    accident = sorted(len(one) for one in both) == [1, 2] and {both[0], both[1]} == {(result[0],), (result[0], 1)}
    made = f"{list(given[0])} and {list(given[1])} are broadcast to {list(result)}"
    larger = times(math.prod(result) / max(map(math.prod, given)))
    order = rows[np.argsort(-case.inclusive_time[rows], kind="stable")]
    return Finding(
        rule,
        Severity.WARNING if accident else Severity.INFO,
        f"{made}, {larger} times as large, {percent(share)} of the step",
        case.gain_of(
            rows,
            ns,
            (0.5, 0.9, 1) if accident else (0.2, 0.6, 0.95),
            "bound: all operators on the tensor that broadcasting makes",
        ),
        tuple(order[:20].tolist()),
        unique_lines(case.lines([row, *order.tolist()])),
        (f"{case.name(row)} makes it; {len(rows)} operators of {case.function(row)} work on such tensors",),
        (
            "Give both the same shape (`squeeze(1)` or `unsqueeze(1)`); now each element is combined with every other "
            "one."
            if accident
            else "Avoid the tensor of all pairs: where it is multiplied or summed at once, a closed form, a matrix "
            "product (matmul, einsum) or torch.cdist needs none."
        ),
        learn_more,
        share,
    )
