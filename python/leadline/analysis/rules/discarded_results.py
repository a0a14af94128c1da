"""Part of `redundant_work`: modules whose results are multiplied by weights that are mostly zeros, such as experts that
all compute all rows.

By shapes (`leadline why`, `--shapes`), where the profiled process says which argument of a product is mostly zeros
(native/providers/torch/zeros.h). One model whose results are picked from computes nothing in vain by that: it takes
several modules of one class, each of which is wanted for some of the rows.
"""

from __future__ import annotations

import numpy as np

from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.columns import Mask, Rows, group_sums
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.sourcecode import carries_state
from leadline.schema import FrameKind
from leadline.units import percent, times

_OPERATORS = ("aten::mul", "aten::mul_", "aten::bmm", "aten::where")
_MOSTLY = 0.5
"""Of the calls on a line that have such weights: by chance some rows have fewer."""
_DISCARDED = 0.6
"""Of the results: what the process calls mostly zeros."""


def discarded_results(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the function whose modules take most."""
    product = case.operators(*_OPERATORS) & ~case.in_phase("backward") & (case.code_function >= 0)
    zeros = product & _says_zeros(case)
    if not zeros.any():
        return []
    number = case.code_line.max(initial=0) + 1
    calls, discarding = (
        group_sums(np.where(mask, case.code_line, -1), case.calls, int(number)) for mask in (product, zeros)
    )
    zeros &= (discarding >= _MOSTLY * np.maximum(calls, 1))[np.maximum(case.code_line, 0)]
    parent = np.maximum(case.tree.shape.parent, 0)
    module = (case.tree.kinds == int(FrameKind.MODULE)) & case.loop.inside
    function = np.where(module, case.code_function[parent], -1)
    module &= np.isin(function, case.code_function[zeros])
    kinds = case.tree.frames["module"].astype(np.int64)[case.tree.frame_of]
    key = function * (int(kinds.max(initial=0)) + 1) + kinds
    for group in case.grouped(module, case.cost_with_all_below, key):
        share = group.value / max(case.cost_of_all, 1)
        if share < least:
            break
        at = np.flatnonzero(zeros & (case.code_function == function[group.row]))
        rows = _beside(case, group.rows, at)
        several = _at_once(case, rows)
        share = float(case.cost_with_all_below[rows].sum()) / max(case.cost_of_all, 1)
        if several >= 2 and share >= least and not _in_turn(case, rows):
            return [_finding(case, rule, learn_more, rows, at, several, share)]
    return []


def _says_zeros(case: Case) -> Mask:
    frames = np.unique(case.tree.frame_of[case.operators(*_OPERATORS)])
    saying = [frame for frame in frames.tolist() if '"zeros"' in case.tree.text("detail", frame)]
    mask: Mask = np.isin(case.tree.frame_of, np.array(saying, np.int64))
    return mask


def _at_once(case: Case, rows: Rows) -> int:
    """How many different modules one call of the function calls."""
    owner = case.tree.shape.parent[rows]
    grand = case.analysis.scopes.module[np.maximum(owner, 0)]
    pairs = np.unique(np.stack([grand, case.tree.frame_of[rows].astype(np.int64)]), axis=1)
    return int(np.unique(pairs[0], return_counts=True)[1].max(initial=0))


def _beside(case: Case, rows: Rows, products: Rows) -> Rows:
    """The modules that are called in the module in which the product stands: no layers within another one, whose
    padding a product masks far above."""
    module = case.analysis.scopes.module
    return rows[np.isin(module[np.maximum(case.tree.shape.parent[rows], 0)], module[products])]


def _in_turn(case: Case, rows: Rows) -> bool:
    """Whether each takes the result of the one before, so that the loop that calls them carries its value on."""
    around = [case.inner_loop(row) for row in rows[:8].tolist()]
    return any(one is not None and carries_state(one[1].node) for one in around)


def _finding(case: Case, rule: str, learn_more: str, rows: Rows, products: Rows, several: int, share: float) -> Finding:
    order = rows[np.argsort(-case.cost_with_all_below[rows], kind="stable")]
    name = case.tree.text("module", int(case.tree.frame_of[order[0]])).rpartition(".")[2]
    lines = unique_lines([*case.lines(order.tolist(), 1), *case.lines(products.tolist(), 2)])
    return Finding(
        rule,
        Severity.WARNING,
        f"{several} modules ({name}) compute all rows, and most of their results are multiplied by zero, "
        f"{percent(share)} of {case.cost_name}",
        case.gain_of(
            rows, int(case.cost_with_all_below[rows].sum()), (0.3, _DISCARDED, 0.9), "bound: what is multiplied by zero"
        ),
        tuple(order[:20].tolist()),
        tuple(lines),
        (
            f"more than {percent(_DISCARDED)} of the weights that {case.name(int(products[0]))} multiplies them with "
            "are zero",
            f"{times(case.per_step(float(case.calls[products].sum())))} such products a step",
        ),
        f"Give each {name} only the rows that it is chosen for: `rows = (choice == i).nonzero()`, then "
        "`out.index_add_(0, rows, module(x[rows]))`.",
        learn_more,
        share,
    )
