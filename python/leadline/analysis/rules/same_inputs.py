"""Part of `redundant_work`: modules that are called again with what they were called with before.

What a call computes is known by its text: the module and its arguments are names that nothing in the loop (or between
two equal calls of a function) changes. A module that draws random numbers computes something else each time, and one
with a backward pass has other weights in the next step; both are left alone.
"""

from __future__ import annotations

import ast
import builtins

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Rows, above, group_sums
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.unchanged import PlainCall, changed_names, plain_calls, trains_between
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_RANDOM = r"rand|bernoulli|dropout|multinomial|normal_|uniform_|exponential_|poisson"
_BUILTIN = frozenset(dir(builtins))
_MOST_LINES = 40
_ALL = 0.8
"""Of the step in a call that gives the same each time: a benchmark, which repeats it on purpose."""


@dataclass(frozen=True)
class _Called:
    """Calls of modules from one line: node of the line, first nodes of the modules, their time, calls a step."""

    row: int
    rows: Rows
    ns: int
    each: float


def same_inputs(case: Case, rule: str, learn_more: str, share: float) -> list[Finding]:
    """Findings for calls that take at least `share` of the step again and again, the largest first."""
    lines = [one for one in _module_lines(case) if case.share(one.ns) >= share]
    modules = frozenset(
        ast.unparse(call.node.func) for one in lines for call in (_calls(case, one.row) or ((), (), []))[2]
    )
    made = [_unchanged(case, one, modules, rule, learn_more) for one in lines]
    made += _twice(case, lines, modules, rule, learn_more)
    return sorted((one for one in made if one is not None), key=lambda one: -one.weight)[:2]


def _module_lines(case: Case) -> list[_Called]:
    """Lines of the user's that call modules, without those that draw random numbers."""
    tree, kinds = case.tree, case.tree.kinds
    modules = case.first_of((kinds == int(FrameKind.MODULE)) & case.loop.inside)
    random = case.matching(FrameKind.OPERATOR, _RANDOM) & (case.calls > 0)
    draws = group_sums(case.outermost(modules), random.astype(np.int64), len(tree)) > 0
    caller = above(tree.shape, np.arange(len(tree)))
    phase = (kinds == int(FrameKind.PHASE)) & (caller >= 0)
    caller = np.where(phase[np.maximum(caller, 0)], caller[np.maximum(caller, 0)], caller)
    found = []
    for group in case.grouped(modules & (case.analysis.scopes.user == caller), case.inclusive_time, case.user_line):
        if draws[group.rows].any():
            continue
        line = int(caller[group.row])
        calls = max(float(case.calls[case.below_row(int(row))].max(initial=0)) for row in group.rows[:20].tolist())
        found.append(_Called(line, group.rows, group.value, case.per_step(calls)))
        if len(found) >= _MOST_LINES:
            break
    return found


def _calls(case: Case, row: int) -> tuple[str, ast.AST, list[PlainCall]] | None:
    """The file of a line, the function around it and the plain calls on it."""
    node = case.tree.node(row)
    source = case.sources.of(node.file) if origin(node.file) == Origin.USER else None
    function = source.function(node.line) if source else None
    if source is None or function is None:
        return None
    imported = {name for one in ast.walk(source.tree or function) for name in _imports(one)}
    calls = [one for one in plain_calls(function, node.line) if not _root(one.node.func) & (imported | _BUILTIN)]
    return node.file, function, calls


def _imports(node: ast.AST) -> set[str]:
    """Names that an import binds: functions and packages, which hold no weights."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {(one.asname or one.name).partition(".")[0] for one in node.names}


def _root(called: ast.expr) -> set[str]:
    while isinstance(called, ast.Attribute | ast.Subscript):
        called = called.value
    return {called.id} if isinstance(called, ast.Name) else set()


def _unchanged(case: Case, one: _Called, modules: frozenset[str], rule: str, learn_more: str) -> Finding | None:
    """A call in a loop that changes nothing of it."""
    known = _calls(case, one.row)
    if known is None or len(known[2]) != 1:
        return None
    file, _, (call,) = known
    source = case.sources.of(file)
    line = case.tree.node(one.row).line
    for block in source.loops(line) if source else []:
        if block.kind != "loop" or call.names & changed_names(block.node, modules=modules):
            continue
        steps = case.is_step_loop(file, block.first)
        if steps and _is_trained(case, one):
            continue  # another step has other weights
        if steps and case.share(one.ns) > _ALL:
            continue  # a loop that does nothing else measures it
        turns = case.loop.steps if steps else max(one.each, 1.0)
        if turns < 2:
            continue
        spared = 1 - 1 / turns
        often = "in every step" if steps else f"{times(one.each)} times a step"
        return Finding(
            rule,
            Severity.WARNING,
            f"{call.text} is computed {often} with the same inputs, {percent(case.share(one.ns))} of the step",
            case.and_warm(case.gain_of(one.rows, one.ns, (0.8 * spared, spared, 1), "the calls but one")),
            tuple(one.rows[:20].tolist()),
            case.lines([one.row]),
            (
                f"nothing in the loop at line {block.first} changes {_listed(call)}",
                f"{duration(case.per_step(one.ns))} a step",
            ),
            "Compute it once before the loop and keep the result.",
            learn_more,
            case.share(one.ns),
        )
    return None


def _is_trained(case: Case, one: _Called) -> bool:
    """Whether these modules have a backward pass, here or where else they are called."""
    same = np.isin(case.tree.frame_of, np.unique(case.tree.frame_of[one.rows]))
    return bool((case.in_phase("backward") & case.below(same)).any())


def _twice(case: Case, lines: list[_Called], modules: frozenset[str], rule: str, learn_more: str) -> list[Finding]:
    """The same text on two lines of a function, with nothing between that changes its names."""
    seen: dict[tuple[str, int, str], tuple[_Called, PlainCall]] = {}
    made = []
    for one in sorted(lines, key=lambda called: case.tree.node(called.row).line):
        known = _calls(case, one.row)
        if known is None:
            continue
        file, function, calls = known
        for call in calls:
            key = (file, getattr(function, "lineno", 0), call.text)
            before = seen.setdefault(key, (one, call))
            first, last = before[1].node.lineno, call.node.lineno
            if before[0] is one or call.names & changed_names(function, first, last - 1, modules):
                continue
            if trains_between(function, first, last - 1) and _is_trained(case, one):
                continue
            ns = min(one.ns, before[0].ns)
            made.append(
                Finding(
                    rule,
                    Severity.WARNING,
                    f"{call.text} is computed at lines {first} and {last} with the same inputs, "
                    f"{percent(case.share(ns))} of the step",
                    case.and_warm(case.gain_of(one.rows, ns, (0.5, 0.9, 1), "the second call, and its backward pass")),
                    tuple(one.rows[:20].tolist()),
                    case.lines([one.row, before[0].row]),
                    (f"nothing between the lines changes {_listed(call)}", f"{duration(case.per_step(ns))} a step"),
                    "Keep the result of the first call in a variable.",
                    learn_more,
                    case.share(ns),
                )
            )
    return made


def _listed(call: PlainCall) -> str:
    return ", ".join(sorted(call.names))
