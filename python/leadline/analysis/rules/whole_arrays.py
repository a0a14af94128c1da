"""Lines of a function that compute on whole arrays in calls and arithmetic of NumPy: no Python loop goes through their
elements, so handling all of them in one call is no advice. Told by the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import text_of
from leadline.analysis.case import Case
from leadline.analysis.columns import Rows
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.place.at import own_nodes, statement_at
from leadline.analysis.rules.words import listed
from leadline.analysis.sourcecode import Source
from leadline.units import percent

_NEARLY_ALL = 0.7
"""Of the function's CPU time."""
_WORTH = 0.1
_LARGE_NS = 200_000.0
"""Of a step on one line that runs once in it: a call of NumPy on a few numbers takes 1 to 10 µs."""
_PACKAGES = ("numpy", "scipy")
_OF_ARRAYS = frozenset(
    (
        *("sum", "mean", "std", "var", "max", "min", "argmax", "argmin", "argsort", "sort", "cumsum", "cumprod", "any"),
        *("all", "clip", "dot", "astype", "reshape", "ravel", "flatten", "repeat", "take", "nonzero", "searchsorted"),
    )
)
_NUMBERS = frozenset(("sum", "mean", "std", "var", "max", "min", "argmax", "argmin", "any", "all", "item", "dot"))
"""Methods that make one number of an array."""
_CHOICE = "random.choice"


@dataclass(frozen=True)
class WholeArrays:
    """`lines`: what each computes and its share of the function's time; `kept`: whether the arrays last from call to
    call (`self.priorities`); `draws`: whether much of it is np.random.choice(p=...)."""

    lines: tuple[tuple[str, int, float], ...]
    kept: bool
    draws: bool

    @property
    def text(self) -> str:
        """`prios ** self.alpha (line 40, 73 % of it) and np.random.choice (line 42, 24 % of it)`."""
        return listed([f"{what} (line {line}, {percent(share)} of it)" for what, line, share in self.lines])

    def instead(self, function: str) -> str:
        """What to do about it."""
        if self.draws and self.kept:
            return (
                f"Keep what {function} computes between calls, update only what changed, and draw from a sum tree "
                "(np.searchsorted in a kept cumulative sum): np.random.choice(p=...) goes through all elements."
            )
        if self.draws:
            return (
                "Add up the probabilities once and draw with np.searchsorted in that sum, or from a sum tree: "
                "np.random.choice(p=...) goes through all elements each time."
            )
        if self.kept:
            return (
                f"Keep what {function} computes between calls and update only the elements that changed: its work "
                "grows with the size of the arrays, not with what is new."
            )
        return (
            f"Compute once, before the loop, what stays the same in {function}, and the rest on fewer elements, in "
            "float32, or as a tensor: NumPy computes these arrays on one thread."
        )


def whole_arrays(case: Case, rows: Rows) -> WholeArrays | None:
    """Of nodes with samples of one function; None where a Python loop is around or in it, where nothing says that the
    lines are about arrays, or where these are small."""
    tree, user = case.tree, case.analysis.scopes.user
    samples = tree.exclusive(METRIC).sum[rows]
    whole = int(samples.sum())
    at = user[rows]
    if whole <= 0 or (at < 0).any() or case.inner_loop(int(at[np.argmax(samples)])) is not None:
        return None
    found: dict[tuple[str, int], int] = {}
    for row, ns in zip(at.tolist(), samples.tolist(), strict=True):
        line = case.line(row)
        if line is not None:
            found[line.file, line.line] = found.get((line.file, line.line), 0) + ns
    lines, kept, draws = [], False, False
    for (file, number), ns in sorted(found.items(), key=lambda one: -one[1]):
        source = case.sources.of(file)
        one = _computed(source, number) if source is not None and case.per_step(float(ns)) >= _LARGE_NS else None
        if one is not None:
            lines.append((one.what, number, ns / whole))
            kept |= one.kept and ns >= _WORTH * whole
            draws |= one.draws and ns >= _WORTH * whole
    if sum(share for _, _, share in lines) < _NEARLY_ALL:
        return None
    return WholeArrays(tuple(one for one in lines if one[2] >= _WORTH), kept, draws)


@dataclass(frozen=True)
class _Computed:
    what: str
    kept: bool
    draws: bool


def _computed(source: Source, line: int) -> _Computed | None:
    """What the statement at a line computes on arrays; None for anything else."""
    statement, function = statement_at(source, line), source.function(line)
    if statement is None or function is None or source.tree is None or source.loops(line):
        return None
    known = _Arrays(source.tree, function, line)
    for node in own_nodes(statement):
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return None
        if isinstance(node, ast.Call) and known.calls(node):
            name = ast.unparse(node.func)
            given = [*node.args, *(one.value for one in node.keywords)]
            draws = name.endswith(_CHOICE) and any(one.arg == "p" for one in node.keywords)
            return _Computed(f"{name}(p=...)" if draws else name, any(known.kept(one) for one in given), draws)
        if isinstance(node, ast.BinOp | ast.Compare) and known.is_array(node):
            return _Computed(text_of(node), known.kept(node), False)
        if isinstance(node, ast.AugAssign) and known.is_array(node.target):
            return _Computed(text_of(node), known.kept(node.target), False)
    return None


class _Arrays:
    """Names that hold arrays in a function, and those of them that last from call to call."""

    def __init__(self, module: ast.Module, function: ast.AST, line: int) -> None:
        self._packages = set(_imported(module))
        self._known: set[str] = set()
        self._lasting: set[str] = set()
        for target, value in _assigned(module):
            if isinstance(target, ast.Attribute) and self.is_array(value):
                self._known.add(ast.unparse(target))
                self._lasting.add(ast.unparse(target))
        for node in ast.walk(function):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in _OF_ARRAYS and isinstance(called.value, ast.Name):
                self._known |= {called.value.id} - self._packages
        for target, value in sorted(_assigned(function), key=lambda one: one[0].lineno):
            if target.lineno < line and isinstance(target, ast.Name) and self.is_array(value):
                self._known.add(target.id)
                if self.kept(value):
                    self._lasting.add(target.id)

    def calls(self, node: ast.Call) -> bool:
        """Whether it is a function of NumPy's, or a method of an array."""
        if ast.unparse(node.func).partition(".")[0] in self._packages:
            return True
        return isinstance(node.func, ast.Attribute) and self.is_array(node.func.value)

    def is_array(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name | ast.Attribute):
            return ast.unparse(node) in self._known
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            return self.calls(node) and name not in _NUMBERS
        if isinstance(node, ast.BinOp):
            return self.is_array(node.left) or self.is_array(node.right)
        if isinstance(node, ast.Compare):
            return self.is_array(node.left) or any(map(self.is_array, node.comparators))
        if isinstance(node, ast.UnaryOp):
            return self.is_array(node.operand)
        return isinstance(node, ast.Subscript) and self.is_array(node.value)

    def kept(self, node: ast.AST) -> bool:
        return any(
            ast.unparse(one) in self._lasting for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)
        )


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] in _PACKAGES:
                    yield one.asname or one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _PACKAGES:
            yield from (one.asname or one.name for one in node.names)


def _assigned(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values, those of `a, b = x, y` one by one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts, strict=False)
                else:
                    yield target, node.value
