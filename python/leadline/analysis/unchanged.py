"""What a loop of the source does not change: calls with the same result in each turn, and calls made twice.

Only the text is looked at, so what is said must be cautious: a name counts as changed where anything could change what
it stands for: assignments to it, to its attributes or elements, `del`, in-place methods (`x.add_`), being a loop's
target, being a parameter of a function inside, and being handed to a call as the object of a method that is not one
of a tensor's own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leadline._dataclass import dataclass


@dataclass(frozen=True)
class PlainCall:
    """A call of something by name (`model.encoder(x, mask=m)`) without calls among its arguments."""

    node: ast.Call
    names: frozenset[str]

    @property
    def text(self) -> str:
        return ast.unparse(self.node)


def plain_calls(around: ast.AST, line: int) -> list[PlainCall]:
    """Those that begin on this line below `around`, the outermost first. Not of names that a comprehension around the
    call binds: each of its turns, and what has the same name outside, are something else."""
    bound = _bound_in_comprehensions(around)
    found = []
    for node in ast.walk(around):
        if not isinstance(node, ast.Call) or node.lineno != line:
            continue
        names = _names_of(node)
        if names and not names & bound.get(node, set()):
            found.append(PlainCall(node, names))
    return found


def _bound_in_comprehensions(around: ast.AST) -> dict[ast.AST, set[str]]:
    """By call, the names that comprehensions around it bind."""
    bound: dict[ast.AST, set[str]] = {}
    for node in ast.walk(around):
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            names = {one.id for made in node.generators for one in ast.walk(made.target) if isinstance(one, ast.Name)}
            for call in ast.walk(node):
                if isinstance(call, ast.Call):
                    bound.setdefault(call, set()).update(names)
    return bound


def trains_between(body: ast.AST, first: int, last: int) -> bool:
    """Whether an optimizer's `step()` stands between these lines: weights are others behind it."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and first <= node.lineno <= last
        for node in ast.walk(body)
    )


def _names_of(call: ast.Call) -> frozenset[str]:
    """Names that the call is made of; empty where it holds another call or stores anything."""
    parts: list[ast.expr] = [call.func, *call.args, *(one.value for one in call.keywords)]
    names: set[str] = set()
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Call | ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.Starred):
                return frozenset()
            if isinstance(node, ast.Name):
                names.add(node.id)
    return frozenset(names)


def changed_names(
    body: ast.AST, first: int = 0, last: int = 1 << 30, modules: frozenset[str] = frozenset()
) -> set[str]:
    """Names that what is between these lines of `body` may change. `modules`: what is called there and known to be a
    module (`self.encoder`), which changes nothing of what holds it."""
    changed: set[str] = set()
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and modules and ast.unparse(node.func) in modules:
            continue
        if first <= getattr(node, "lineno", first) <= last:
            changed |= set(_changes(node))
    return changed


def _changes(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id
    elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from _root(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _may_change(node.func.attr):
        yield from _root(node.func)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _CHANGING.search(node.func.id):
        yield from (one.id for one in node.args if isinstance(one, ast.Name))
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.arg):  # each call binds it anew
        yield node.arg


_QUIET = frozenset(
    [
        *("forward", "encode", "detach", "float", "half", "bfloat16", "double", "to", "cpu", "cuda", "view", "reshape"),
        *("mean", "sum", "eval", "train", "size", "dim", "numel", "item", "tolist", "numpy", "clone", "contiguous"),
        *("transpose", "permute", "unsqueeze", "squeeze", "expand", "backward", "zero_grad", "square", "sqrt", "abs"),
        *("softmax", "log_softmax", "argmax", "max", "min"),
    ]
)
_CHANGING = re.compile(r"update|ema|sync|copy|momentum|step|assign|load", re.IGNORECASE)
"""Names of functions that may change what they are given: `update_teacher(teacher, model)`."""


def _may_change(method: str) -> bool:
    """`x.add_(...)`, `items.append(...)`: anything but methods known to leave their object as it is."""
    return method.endswith("_") or method not in _QUIET


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
