"""Part of `computed_again`: what a function computes of a sparse tensor that is made of the same inputs each time.

A sparse tensor has no memory of its own, so it has no number, nor has what is computed from it. Where the operator that
creates it repeats, the rest of a function repeats too, if the source shows that nothing else goes into it: all of its
arguments went into operators that repeat, and all other names are its own, torch's or Python's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Mask, Rows, nearest
from leadline.analysis.origin import Origin
from leadline.analysis.rules.base import Case
from leadline.analysis.scopes import frame_origins
from leadline.schema import FrameKind

Weights: TypeAlias = "NDArray[np.float64]"
_CREATES = r"^aten::(sparse_\w+_tensor|to_sparse\w*)$"
_CHANCE = (
    r"rand|bernoulli|dropout|multinomial|normal_|::normal|uniform|exponential|poisson|cauchy|geometric|rrelu|set_data"
)
_AS_FOUND = r"^aten::(empty|resize)"
_NEARLY_ALL = 0.9
_OF_MODULES = ("forward", "__call__", "main", "<module>")
_OTHER_NAMES = ("input", "open", "globals", "locals", "vars", "getattr", "setattr", "eval", "exec", "id", "next")
_LEFT_ALONE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.While, ast.Try),
)


def behind_sparse(case: Case, operators: Mask, part: Weights) -> Weights:
    """The part of its calls in which each operator repeats, with those known by a sparse tensor's creation alone."""
    tree, frames = case.tree, case.tree.frames
    created = operators & case.matching(FrameKind.OPERATOR, _CREATES) & (part >= _NEARLY_ALL)
    if not created.any():
        return part
    python = frames["kind"] == int(FrameKind.PYTHON)
    at = nearest(tree.shape, python[tree.frame_of])[created]
    mine = frame_origins(tree) == int(Origin.USER)
    part = part.copy()
    for frame in np.unique(tree.frame_of[at[at >= 0]]).tolist():
        same = python & mine
        for column in ("file", "name", "first_line"):
            same &= frames[column] == frames[column][frame]
        if same.any():
            _complete(case, operators, part, same[tree.frame_of])
    return part


def _complete(case: Case, operators: Mask, part: Weights, function: Mask) -> None:
    """Of one function: sets what is not known of its operators, where nothing new goes into them."""
    tree = case.tree
    node = tree.node(int(np.flatnonzero(function)[0]))
    here = case.below(function) & case.loop.inside
    called = here & case.called
    rows = np.flatnonzero(called)
    line = tree.frames["line"][tree.frame_of[nearest(tree.shape, function)[rows]]].astype(np.int64)
    known = part[rows] >= _NEARLY_ALL
    creates = case.matching(FrameKind.OPERATOR, _CREATES)[rows]
    if node.name.rpartition(".")[2] in _OF_MODULES or not (known & creates).any():
        return
    first = int(line[known & creates].min())
    new_before = ~known & ((line < first) | ((line == first) & creates))
    if known.all() or new_before.any() or (called & ~operators).any() or _is_other_work(case, here, called):
        return
    repeats = {(case.name(int(rows[one])), int(line[one])) for one in np.flatnonzero(known).tolist()}
    source = case.sources.of(node.file)
    definition = source.function(first) if source else None
    if source is None or not isinstance(definition, ast.FunctionDef) or definition.name != node.name.rpartition(".")[2]:
        return
    if not _only_of_repeated(definition, source.tree, first, repeats):
        return
    made: Rows = rows[creates & (line == first)]
    calls = tree.exclusive("call_time").count[made]
    part[rows[~known]] = float((part[made] * calls).sum() / max(int(calls.sum()), 1))


def _is_other_work(case: Case, here: Mask, called: Mask) -> bool:
    """Random numbers, memory as it was found, modules, or what autograd recorded."""
    chance = here & case.matching(FrameKind.OPERATOR, _CHANCE)
    found = called & case.matching(FrameKind.OPERATOR, _AS_FOUND)
    modules = here & (case.tree.kinds == int(FrameKind.MODULE))
    return bool((chance | found | modules | (here & case.in_phase("backward"))).any())


def _only_of_repeated(
    function: ast.FunctionDef, file: ast.Module | None, first: int, repeats: set[tuple[str, int]]
) -> bool:
    """Whether every argument of a function went into operators that repeat, up to line `first`, and whether it reads
    nothing else. `repeats`: their names and lines."""
    arguments = function.args
    inside = [node for statement in function.body for node in ast.walk(statement)]
    if arguments.vararg or arguments.kwarg or any(isinstance(node, _LEFT_ALONE) for node in inside):
        return False
    given = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    known = {
        name
        for statement in function.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) and statement.lineno <= first
        for name in _asked(statement, repeats)
    }
    names = [node for node in inside if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)} - given
    allowed = own | (given & known) | _of_torch(file) | (set(dir(builtins)) - set(_OTHER_NAMES))
    return all(node.id in allowed for node in names)


def _asked(statement: ast.stmt, repeats: set[tuple[str, int]]) -> Iterator[str]:
    """Names that are arguments of operators that repeat."""
    branches = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    inside = list(ast.walk(statement))
    if any(isinstance(node, branches) for node in inside):
        return
    for node in inside:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        lines = range(statement.lineno, (statement.end_lineno or 0) + 1)
        if not any((f"aten::{node.func.attr}", line) in repeats for line in lines):
            continue
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
            yield from (part.id for part in parts if isinstance(part, ast.Name))


def _of_torch(file: ast.Module | None) -> set[str]:
    """Names that the file imports of torch and of Python's arithmetic."""
    found: set[str] = set()
    for node in file.body if file else ():
        if isinstance(node, ast.Import):
            found |= {
                one.asname or one.name.partition(".")[0]
                for one in node.names
                if one.name.partition(".")[0] in ("torch", "math")
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("torch", "math"):
            found |= {one.asname or one.name for one in node.names}
    return found
