"""Where a part of the account is: the user's lines with most of it, and what takes the time below each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.calls_in_source import only_call
from leadline.analysis.case import Case
from leadline.analysis.columns import Rows, at_rows, group_sums
from leadline.analysis.functions import METRIC, function_of_line
from leadline.analysis.origin import Origin, origin, package_path
from leadline.analysis.rules.words import module, operator
from leadline.analysis.sampled import present, says_something
from leadline.analysis.wrappers import passes_on, without_wrappers
from leadline.profiles.tree import Tree
from leadline.schema import FrameKind
from leadline.verdict.model import Place

MOST = 3
_LONGEST = 50

_NO_FUNCTION = [
    int(kind) for kind in (FrameKind.ROOT, FrameKind.PROCESS, FrameKind.THREAD, FrameKind.MODULE, FrameKind.PHASE)
]


class Places:
    """Names places of one case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._tree: Tree = case.tree
        self._operator = case.analysis.scopes.inner

    def of(self, rows: Rows, values: NDArray[np.float64], *, functions: bool) -> tuple[Place, ...]:
        """The lines with most of `values`, the largest first. `functions`: Python is what takes the time, so lines of
        one function are one place."""
        case = self._case
        line = case.user_line[rows]
        key = self._functions(rows) if functions else line * (len(self._tree) + 1) + self._names(rows)
        found, group = np.unique(key, return_inverse=True)
        sums = group_sums(group, values.astype(np.int64), len(found))
        made = []
        for one in np.argsort(-sums, kind="stable")[:MOST].tolist():
            here = rows[group == one]
            of_here = values[group == one]
            row = (
                int(here[np.argmax(_by_line(line[group == one], of_here))])
                if functions
                else int(here[np.argmax(of_here)])
            )
            if sums[one] > 0:
                made.append(self._place(row, int(sums[one]), here, of_here, functions=functions))
        return tuple(made)

    def calls(self, rows: Rows, values: NDArray[np.float64]) -> tuple[Place, ...]:
        """The same of lines that stand for all they call, named by the function that is called there."""
        made = []
        validates = self._case.validation
        for at in np.argsort(-values, kind="stable")[:MOST].tolist():
            row, ns = int(rows[at]), int(values[at])
            line = self._case.line(row)
            if line is not None and ns > 0:
                short = line.short.rsplit("/", 1)[-1] if line.short.startswith("/") else line.short
                what = "validation" if validates[row] else self._called_at(row) or self._written_at(row)
                made.append(Place(line.file, line.line, line.function, short, what, self._most_below(row), ns))
        return tuple(made)

    def _most_below(self, row: int) -> str:
        """`eval.py:12 evaluate`: the line of the user's below with most of the time."""
        case = self._case
        rows = case.below_row(row)
        time = case.tree.exclusive("time").sum[rows] + np.where(
            case.analysis.scopes.inner[rows] < 0, case.tree.exclusive(METRIC).sum[rows], 0
        )
        user = case.analysis.scopes.user[rows]
        here = (user >= 0) & (time > 0)
        if not here.any():
            return ""
        sums = np.bincount(user[here], time[here])
        line = case.line(int(np.argmax(sums)))
        return f"{line.short}:{line.line} {line.function}" if line is not None else ""

    def _called_at(self, row: int) -> str:
        """The function that most is below, of those that the line calls; what a wrapper wraps in place of it."""
        tree = self._tree
        whole = tree.inclusive("time").sum
        below = [one for one in tree.shape.children(row).tolist() if tree.kinds[one] == int(FrameKind.PYTHON)]
        best = max(below, key=lambda one: int(whole[one]), default=-1)
        while best >= 0 and len(called := tree.shape.children(best)):
            most = int(called[np.argmax(whole[called])])
            if not passes_on(tree, best, most):
                break
            best = most
        return tree.text("name", int(tree.frame_of[best])) if best >= 0 and self._is_python(best) else ""

    def _written_at(self, row: int) -> str:
        """What the line calls by its source, else its text."""
        line = self._case.line(row)
        if line is None or not line.text:
            return ""
        text = line.text if len(line.text) <= _LONGEST else line.text[: _LONGEST - 1] + "…"
        return only_call(self._case, row) or f"`{text}`"

    def _is_python(self, row: int) -> bool:
        return int(self._tree.kinds[row]) == int(FrameKind.PYTHON)

    def _names(self, rows: Rows) -> Rows:
        names = self._tree.frames["name"].astype(np.int64)[self._tree.frame_of]
        inner = self._operator[rows]
        return np.where(inner >= 0, at_rows(names, inner, 0), names[rows])

    def _functions(self, rows: Rows) -> Rows:
        return function_of_line(self._tree, self._case.analysis.scopes.user[rows])

    def _place(self, row: int, ns: int, rows: Rows, values: NDArray[np.float64], *, functions: bool) -> Place:
        case = self._case
        line = case.line(row)
        what = self._what(row, rows, values, functions=functions)
        if line is None:
            return Place("", 0, self._around(row), "", what, "", ns)
        of_user = origin(line.file) == Origin.USER  # else the library's own line stands for itself
        below = "" if not of_user else self._library(row) if functions else case.made_by(row)
        short = line.short.rsplit("/", 1)[-1] if line.short.startswith("/") else line.short
        return Place(line.file, line.line, line.function, short, what, below, ns)

    def _around(self, row: int) -> str:
        """Where no Python frame is known: the innermost region or module above, by name."""
        for at in reversed(self._tree.path_rows(row)):
            if self._tree.kinds[at] in (int(FrameKind.REGION), int(FrameKind.MODULE)):
                return module(self._tree.text("name", int(self._tree.frame_of[at])))
        return ""

    def _what(self, row: int, rows: Rows, values: NDArray[np.float64], *, functions: bool) -> str:
        case = self._case
        inner = int(self._operator[row])
        if inner >= 0 and not functions:
            return operator(case.name(inner))
        called: dict[str, float] = {}
        for at, value in sorted(zip(rows.tolist(), values.tolist(), strict=True), key=lambda one: -one[1])[:300]:
            name = self._first_below(at)
            called[name] = called.get(name, 0.0) + value
        best = max(called, key=lambda name: called[name], default="")
        found = best if called.get(best, 0.0) >= 0.5 * float(values.sum()) else ""
        return found or (only_call(case, row) if functions else "")

    def _first_below(self, row: int) -> str:
        """The first function below the user's line that a reader knows; empty where the line itself runs."""
        user = int(self._case.analysis.scopes.user[row])
        for at in without_wrappers(self._tree, self._tree.path_rows(row)):
            if at <= user or self._tree.kinds[at] in _NO_FUNCTION:
                continue
            name = self._tree.text("name", int(self._tree.frame_of[at]))
            if says_something(name):
                return present(operator(name))
        return ""

    def _library(self, row: int) -> str:
        """`pandas/core/series.py:12 Series.__getitem__`: the first library function below the user's line."""
        user = int(self._case.analysis.scopes.user[row])
        for at in without_wrappers(self._tree, self._tree.path_rows(row)):
            if at <= user or not self._is_python(at):
                continue
            node = self._tree.node(at)
            if node.file and origin(node.file) != Origin.USER and not node.file.startswith("<"):
                return f"{package_path(node.file) or node.file}:{node.line} {node.name}"
        return ""


def _by_line(line: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each node the sum of its line."""
    found, group = np.unique(line, return_inverse=True)
    sums: NDArray[np.float64] = np.bincount(group, values, len(found)).astype(np.float64)
    summed: NDArray[np.float64] = sums[group]
    return summed
