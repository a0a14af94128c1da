"""Lines of the program's own files that call something by name: where a mode is set whose cost the profile shows."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.findings import Line
from leadline.schema import FrameKind

_BUILT_IN = frozenset(dir(builtins))
_LONGEST = 40
_REGISTERS = re.compile(r"register_\w*hook$")


def lines_that_call(
    case: Case, names: Collection[str], *, arguments: Collection[str] = (), keyword: str = "", most: int = 2
) -> list[Line]:
    """Calls of one of `names` (`.double()`, `set_detect_anomaly(True)`), with `arguments` only those that are given one
    of them by name (`torch.float64`); or any call with `keyword=True`. None where the source cannot be read."""
    found: list[Line] = []
    for file, tree in user_trees(case):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _asked(node, names, arguments, keyword):
                found.append(case.line_at(file, node.end_lineno or node.lineno))
    return sorted(found, key=lambda one: (one.file, one.line))[:most]


def user_trees(case: Case) -> Iterator[tuple[str, ast.Module]]:
    """The program's own files in the profile with what they parse to, in order of name; without those that cannot be
    read."""
    frames = case.tree.frames
    rows = np.unique(frames["file"][frames["kind"] == int(FrameKind.PYTHON)])
    for file in sorted(case.tree.tables.strings[row] for row in rows.tolist()):
        source = case.sources.of(file) if file and case.is_own(file) else None
        if source is not None and source.tree is not None:
            yield file, source.tree


def only_call(case: Case, row: int) -> str:
    """`np.random.choice`: what the user's line of a node calls, where that is one thing; of native functions no frame
    says it. Empty where the source cannot be read, or calls several."""
    line = case.line(row)
    source = case.sources.of(line.file) if line is not None else None
    if line is None or source is None or source.tree is None:
        return ""
    called = {
        ast.unparse(node.func)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and node.lineno == line.line and isinstance(node.func, ast.Attribute | ast.Name)
    }
    called = {name for name in called if name not in _BUILT_IN and len(name) <= _LONGEST}
    return called.pop() if len(called) == 1 else ""


def outermost_call(case: Case, row: int) -> str:
    """`polynomials(laplacian(graph), 3)`: the outermost call on the user's line of a node, without its arguments
    if they are long. Empty if the source cannot be read, or if the line has two outermost calls."""
    line = case.line(row)
    source = case.sources.of(line.file) if line is not None else None
    if line is None or source is None or source.tree is None:
        return ""
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and node.lineno == line.line]
    inner = {id(below) for node in calls for below in ast.walk(node) if below is not node}
    outer = [node for node in calls if id(node) not in inner]
    if len(outer) != 1:
        return ""
    whole, name = ast.unparse(outer[0]), ast.unparse(outer[0].func)
    return whole if len(whole) <= 2 * _LONGEST else f"{name}(...)" if len(name) <= _LONGEST else ""


def hooks_of(tree: ast.AST) -> dict[str, str]:
    """Functions that are given to `register_forward_hook` and its like, or make what is given: by which of these."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Attribute) or not _REGISTERS.search(called.attr):
            continue
        assert isinstance(node, ast.Call)
        for one in ast.walk(node.args[0]) if node.args else ():
            if isinstance(one, ast.Lambda):
                names.setdefault("<lambda>", called.attr)
            elif isinstance(one, ast.Name | ast.Attribute):
                names.setdefault(one.id if isinstance(one, ast.Name) else one.attr, called.attr)
    return {name: by for name, by in names.items() if name not in ("self", "functools", "partial")}


def unique_lines(lines: Iterable[Line], most: int = 3) -> tuple[Line, ...]:
    """The first `most` of different places, in this order."""
    found: dict[tuple[str, int], Line] = {}
    for one in lines:
        found.setdefault((one.file, one.line), one)
    return tuple(found.values())[:most]


def _asked(call: ast.Call, names: Collection[str], arguments: Collection[str], keyword: str) -> bool:
    if keyword and any(one.arg == keyword and _is_true(one.value) for one in call.keywords):
        return True
    if name_of(call.func) not in names or any(_is_false(one) for one in call.args[:1]):
        return False
    given = [*call.args, *(one.value for one in call.keywords)]
    return not arguments or any(name_of(one) in arguments for one in given)


def name_of(node: ast.expr | None) -> str:
    """`float64` of `torch.float64`, `decode` of `tokenizer.decode`; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.AST, most: int = _LONGEST) -> str:
    """The source of an expression, cut to so many letters."""
    text = ast.unparse(node)
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
