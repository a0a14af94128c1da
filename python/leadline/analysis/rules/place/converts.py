"""Whether a line of the program turns lists or tuples of values or arrays into tensors, which torch does element by
element."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import name_of
from leadline.analysis.case import Case
from leadline.analysis.columns import Rows, factorized, group_sums
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.place.at import At, own_nodes, statement_at
from leadline.analysis.rules.place.fact import Fact
from leadline.schema import FrameKind

_CONVERTS_NS = 200_000.0
"""Around an operator's call the interpreter takes 5 to 30 µs; what takes more for each handles values one by one."""
INSTEAD = (
    "Join the arrays or lists in NumPy first: torch.from_numpy(np.stack(arrays)), or torch.as_tensor(np.array(values))."
    " torch.tensor reads a list or tuple element by element, and of an array in it makes an object of each element."
)
SPARES = (0.3, 0.85, 1.0)
"""Of the time: numbers in lists are read one by one by NumPy, too; arrays are copied, in a hundredth of the time."""
_MAKES = re.compile(r"^(?:tensor|as_tensor|asarray|\w*Tensor)$")
_OF_TENSOR = frozenset(("aten::lift_fresh", "aten::detach_"))
"""Operators that torch.tensor ends with."""
_MUCH = 0.5
"""Of the place's CPU time."""


@dataclass(frozen=True)
class Converted:
    """A line of the program: a node of it, and the CPU time that it converts values for."""

    row: int
    ns: int


def converted(case: Case, rows: Rows) -> list[Converted]:
    """Lines among these nodes that convert, the longest first."""
    tree, scopes = case.tree, case.analysis.scopes
    samples = tree.exclusive(METRIC).sum
    line = scopes.user[rows]
    own = rows[(samples[rows] > 0) & (scopes.inner[rows] < 0) & (line >= 0) & (case.inner_python[rows] == line)]
    lines = scopes.user[own]
    each = [Converted(row, int(samples[own[lines == row]].sum())) for row in np.unique(lines).tolist()]
    found = [one for one in each if outlasts(case, _called(case, one.row), one.ns) and _makes_tensor(case, one.row)]
    most = max((one.ns for one in found), default=0)
    return sorted((one for one in found if 10 * one.ns >= most), key=lambda one: -one.ns)


def outlasts(case: Case, called: Rows, ns: int) -> bool:
    """Whether Python that takes `ns` and calls these operators takes far longer than they and their calls do."""
    if not len(called):
        return False
    key = factorized(case.tree.frame_of[called].astype(np.int64))
    calls = group_sums(key, case.calls[called], int(key.max()) + 1)
    return ns >= _CONVERTS_NS * int(calls.max()) and ns >= 2 * int(case.inclusive_time[called].sum())


def _called(case: Case, row: int) -> Rows:
    below: Rows = np.asarray(case.tree.shape.children(row))
    found: Rows = below[case.tree.kinds[below] == int(FrameKind.OPERATOR)]
    return found


def _makes_tensor(case: Case, row: int) -> bool:
    """By the statement, where it can be read; else by the operators."""
    node = case.tree.node(row)
    statement = statement_at(case.sources.of(node.file), node.line)
    if statement is None:
        return any(case.name(at) in _OF_TENSOR for at in _called(case, row).tolist())
    return any(
        isinstance(one, ast.Call) and _MAKES.match(name_of(one.func)) and one.args and not _computes(one.args[0])
        for one in own_nodes(statement)
    )


def _computes(given: ast.expr) -> bool:
    """Whether what is converted is first made on the line, so that its time may be that of making it."""
    return any(isinstance(one, ast.Call) and name_of(one.func) not in ("list", "tuple") for one in ast.walk(given))


def converts(case: Case, at: At) -> Iterator[Fact]:
    """Of a place where Python takes the time."""
    if at.operator or case.known_loop is None:
        return
    whole = int(case.tree.exclusive(METRIC).sum[at.rows].sum())
    if sum(one.ns for one in converted(case, at.rows)) >= max(_MUCH * whole, 1):
        yield Fact(
            "converts", "turns a list or tuple of arrays or numbers into a tensor, element by element", 0.8, INSTEAD
        )
