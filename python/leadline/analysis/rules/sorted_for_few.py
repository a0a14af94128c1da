"""Part of `redundant_work`: all of a tensor is sorted, and only its first or last few values are read."""

from __future__ import annotations

import ast

from leadline.analysis.calls_in_source import name_of
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.units import duration, percent

_SORTS = ("sort", "argsort", "msort")
_PARTS = ("values", "indices")
_PICKS = ("gather", "take_along_dim", "index_select", "take")
"""What reads of the sorted positions only those that were chosen."""


def sorted_for_few(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the line whose sort takes most."""
    sorts = case.first_of(case.operators("aten::sort", "aten::argsort", "aten::msort") & ~case.in_phase("backward"))
    for group in case.by_line(sorts, case.cost_with_all_below)[:3]:
        share = group.value / max(case.cost_of_all, 1)
        if share < least:
            break
        place = case.tree.node(int(case.analysis.scopes.user[group.row]))
        source = case.sources.of(place.file) if origin(place.file) == Origin.USER else None
        function = source.function(place.line) if source else None
        asked = read_of_sorted(function, place.line) if function is not None else ""
        if asked:
            return [
                Finding(
                    rule,
                    Severity.WARNING,
                    f"{case.name(group.row)} sorts everything, and only {asked} is read, {percent(share)} of "
                    f"{case.cost_name}",
                    case.gain_of(group.rows, group.value, (0.3, 0.8, 1), "bound: the sort"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"{duration(case.per_step(group.value))} a step in the sort",),
                    "Select instead of sorting: torch.topk(x, k) returns the k largest in order, torch.kthvalue(x, k) "
                    "one of them, x.max() the first.",
                    learn_more,
                    share,
                )
            ]
    return []


def read_of_sorted(function: ast.AST, line: int) -> str:
    """`values[:, :k]` where the function reads nothing else of what is sorted on this line, but what it picks by the
    places that were chosen; empty otherwise."""
    above = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and name_of(node.func) in _SORTS
            and node.lineno <= line <= (node.end_lineno or 0)
        ):
            return _read(function, node, above)
    return ""


def _read(function: ast.AST, sort: ast.Call, above: dict[ast.AST, ast.AST]) -> str:
    whole = _of_one_result(sort, above)
    parent = above.get(whole)
    if isinstance(parent, ast.Subscript) and parent.value is whole:
        return ast.unparse(parent) if _is_end(parent.slice) and len(ast.unparse(parent)) < 50 else ""
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return ""
    target = parent.targets[0]
    names = {
        one.id for one in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(one, ast.Name)
    }
    parts, picked = [], True
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id not in names or isinstance(node.ctx, ast.Store):
            continue
        value = _of_one_result(node, above)
        user = above.get(value)
        if isinstance(user, ast.Subscript) and user.value is value and _is_end(user.slice):
            parts.append(ast.unparse(user))
        else:
            picked = picked and _is_pick(value, user)
    return parts[0] if parts and picked else ""


def _of_one_result(node: ast.AST, above: dict[ast.AST, ast.AST]) -> ast.AST:
    """`sort(x).values` and `sort(x)[0]`, which are results of the call and no part of them."""
    parent = above.get(node)
    if isinstance(parent, ast.Attribute) and parent.attr in _PARTS:
        return parent
    is_first = isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant)
    if isinstance(node, ast.Call) and is_first and name_of(node.func) == "sort" and parent is not None:
        return parent
    return node


def _is_pick(value: ast.AST, user: ast.AST | None) -> bool:
    """`indices.gather(1, chosen)`, `torch.gather(indices, 1, chosen)`."""
    called = user if isinstance(user, ast.Call) else None
    return (isinstance(user, ast.Attribute) and user.attr in _PICKS) or (
        called is not None and name_of(called.func) in _PICKS and called.args[:1] == [value]
    )


def _is_end(index: ast.expr) -> bool:
    """`:k`, `-k:`, `0` or `-1` in one dimension, and all of the others."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    ends = [one for one in parts if _bounds(one)]
    return len(ends) == 1 and all(one in ends or _is_all(one) for one in parts)


def _bounds(one: ast.expr) -> bool:
    if isinstance(one, ast.Slice):
        from_end = isinstance(one.lower, ast.UnaryOp) and isinstance(one.lower.op, ast.USub)
        first_few = one.upper is not None and not isinstance(one.upper, ast.UnaryOp)
        return one.step is None and (first_few or (from_end and one.upper is None))
    number = one.operand if isinstance(one, ast.UnaryOp) else one
    return isinstance(number, ast.Constant) and isinstance(number.value, int)


def _is_all(one: ast.expr) -> bool:
    is_dots = isinstance(one, ast.Constant) and one.value is Ellipsis
    return is_dots or (isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None)
