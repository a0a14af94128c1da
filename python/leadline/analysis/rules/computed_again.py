"""Part of `redundant_work`: operators that were called with what they were called with before, by the numbers that the
profiled process gives to values (native/providers/torch/value_numbers.h). Needs shapes: `leadline why`, `--shapes`.

The place is the outermost line or module nearly all of whose operators computed what was known already: a mask made in
each layer, an encoder called for each token, a table of positions made in each step.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.calls_in_source import outermost_call
from leadline.analysis.columns import Mask, Rows, above, subtree_sums
from leadline.analysis.functions import function_of_line
from leadline.analysis.rules.base import Case, Finding, Severity, Values
from leadline.analysis.rules.logging_in_loop import logging_calls
from leadline.analysis.rules.sparse_again import behind_sparse
from leadline.analysis.rules.weights_again import parametrised
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_NEARLY_ALL = 0.9
_HALF = 0.5
"""Of its calls, for an operator to be one that repeats: what comes several times in a row is new once each time."""
_MEASURES = 0.8
"""Of the step, with most of its operators' calls: a loop that does nothing else repeats it to measure it."""
_FIRST_ONLY = 1.5
"""Of the calls of one step: more that are new than this came after the first step."""
_CHANGES = 0.1
"""Of the step: operators whose inputs differ from step to step though they come back, as in a second epoch."""
Weights: TypeAlias = "NDArray[np.float64]"
_PHASES = ("backward", "optimizer", "recompute", "data loading")
_MOST, _LOOKED_AT = 2, 10


def computed_again(case: Case, rule: str, learn_more: str, values: Values, named: list[int]) -> list[Finding]:
    """At most two findings, the largest first. `named`: nodes that other findings say the same of."""
    tree, loop = case.tree, case.loop
    part, operators = repeated_part(case)
    if not part.any():
        return []
    calls = np.maximum(tree.exclusive("call_time").count, 1)
    spent = np.where(operators, case.inclusive_time, 0)
    again = (spent * part).astype(np.int64)
    repeating = np.where(part >= _HALF, spent, again)
    whole, known, repeats = (subtree_sums(tree.shape, column) for column in (spent, again, repeating))
    all_calls, repeating_calls = np.where(operators, calls, 0), np.where(operators & (part >= _HALF), calls, 0)
    mostly = subtree_sums(tree.shape, repeating_calls) >= _HALF * subtree_sums(tree.shape, all_calls)
    wrong = _places(case) & loop.inside & mostly & (known > 0) & (repeats >= _NEARLY_ALL * whole)
    made = []
    for group in case.grouped(case.first_of(wrong), known, function_of_line(tree, np.arange(len(tree))))[:_LOOKED_AT]:
        below = case.mask(group.rows)
        if below[named].any():
            continue
        here = below & operators
        python = case.python_ns(here)
        share = case.share(group.value + python)
        if share < values["info"]:
            break
        if case.share(group.value) < values["info"] / 2:
            continue  # views of what is logged or saved compute nothing, whatever the Python around them takes
        often = case.per_step(float((part * calls)[here].max(initial=0)))
        what = _what(case, group.row, group.rows)
        made.append(
            Finding(
                rule,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"{what} computes again what it computed before, {percent(share)} of the step",
                case.and_warm(
                    case.gain_of(group.rows, int(group.value + python), (0.5, 0.9, 1), "the calls with equal inputs")
                ),
                tuple(group.rows[:20].tolist()),
                case.lines(_lines(case, group.row), 3),
                (
                    f"the same operators on the same values, {times(often)} a step",
                    f"{duration(case.per_step(group.value))} a step in operators",
                ),
                "Compute it once: in the constructor (register_buffer), before the loop, or at the top of the step, "
                "keep the result and hand it on.",
                learn_more,
                share,
            )
        )
    return made[:_MOST]


def repeated_part(case: Case) -> tuple[Weights, Mask]:
    """Of each operator that Python calls: which part of its calls got inputs that it had before; and the mask of these
    operators. Where nearly all repeats, the loop repeats itself to measure, or goes through the same data again: there
    only what has the same inputs at every step counts, and nothing where that is all.
    """
    again = case.tree.exclusive("again").sum
    left_out = parametrised(case) | logging_calls(case)  # weights_again and logging_in_loop say of what
    for name in _PHASES:
        left_out |= case.in_phase(name)
    operators: Mask = case.called & ~left_out
    calls = np.maximum(case.tree.exclusive("call_time").count, 1)
    part: Weights = np.where(operators, np.minimum(again / calls, 1.0), 0.0)  # later steps are numbered now and then
    part = behind_sparse(case, operators, part)
    number = np.maximum(again, part * calls)
    spent = np.where(operators & (part >= _HALF), case.inclusive_time, 0)
    repeated = float((part * calls)[operators].sum()) / max(float(calls[operators].sum()), 1.0)
    if case.share(int(spent.sum())) > _MEASURES and repeated > _HALF:
        first = calls - number > _FIRST_ONLY * np.maximum(calls / case.loop.steps, 1.0)
        if case.share(int(spent[first].sum())) < _CHANGES:
            return np.zeros_like(part), operators
        part = np.where(first, 0.0, part)
    return part, operators


def _places(case: Case) -> Mask:
    """Lines of the program's own, and modules."""
    tree = case.tree
    users = case.analysis.scopes.user
    found: Mask = (tree.kinds == int(FrameKind.MODULE)) | (users == np.arange(len(tree)))
    return found


def _lines(case: Case, row: int) -> list[int]:
    """The line itself (of a module: that calls it), and what calls the function around it."""
    tree = case.tree
    users: Rows = case.analysis.scopes.user
    parent = max(int(tree.parent[row]), 0)
    outer = int(above(tree.shape, np.where(users == np.arange(len(tree)), np.arange(len(tree)), -1))[row])
    return [row if tree.kinds[row] == int(FrameKind.PYTHON) else parent, *([outer] if outer > 0 else [])]


def _what(case: Case, row: int, rows: Rows) -> str:
    if case.tree.kinds[row] == int(FrameKind.MODULE):
        return case.name(row)
    if len(np.unique(case.tree.frame_of[rows])) == 1 and (call := outermost_call(case, row)):
        return call
    return case.function(row) or "This line"
