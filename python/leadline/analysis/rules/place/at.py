"""A place in the tree: the nodes of a line with what runs there, and the line's statement in the source."""

from __future__ import annotations

import ast
import re

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import CannotTell, Case
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.loop import Loop
from leadline.analysis.origin import Origin, origin
from leadline.analysis.sourcecode import Block, Source
from leadline.schema import FrameKind

_PROGRAM = re.compile(r"(jit|pjit|pmap)\(")
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class At:
    """`rows`: nodes of the loop (of the run, where nothing repeats) that are booked on the line; `mine`: those of them
    that are the operator `what`, else all; `row`: the one with most time; `statement`: None where the source cannot be
    read; `loops`: around it in its own function, without those of the steps; `compiled`: in a program of JAX;
    `called`: functions of the program and of libraries on the way from the line to where the time goes."""

    file: str
    line: int
    what: str
    rows: Rows
    mine: Rows
    row: int
    operator: bool
    source: Source | None
    statement: ast.stmt | None
    loops: tuple[Block, ...]
    compiled: bool
    called: tuple[str, ...]

    @property
    def function(self) -> ast.AST | None:
        """What the line stands in; None where the source cannot be read."""
        return self.source.function(self.line) if self.source is not None else None


def at_line(case: Case, file: str, line: int, what: str = "") -> At | None:
    """The place; None where the profile has nothing there."""
    tree, user = case.tree, case.analysis.scopes.user
    here = _frames_at(case, file, line)[tree.frame_of]
    booked = (user >= 0) & here[np.maximum(user, 0)]
    rows = np.flatnonzero(booked & _counted(case))
    rows = rows if len(rows) else np.flatnonzero(booked & ~_on_loops_thread(case))  # what runs beside the loop
    if not len(rows):
        return None
    names = {frame: tree.text("name", frame) for frame in np.unique(tree.frame_of[rows]).tolist()}
    operators = tree.kinds[rows] == int(FrameKind.OPERATOR)
    what = what or _operator_of(case, rows, operators)
    wanted = [frame for frame, name in names.items() if what and name.rpartition(": ")[2] == what]
    mine = rows[np.isin(tree.frame_of[rows], wanted) & operators]
    operator = len(mine) > 0
    mine = mine if operator else rows
    cost = cost_of(case)[mine]
    row = int(mine[np.argmax(cost)])
    source = case.sources.of(file) if origin(file) == Origin.USER else None
    around = tree.path_rows(int(user[row]))
    return At(
        file,
        line,
        what,
        rows,
        mine,
        row,
        operator,
        source,
        statement_at(source, line),
        _loops(case, source, file, line),
        any(_PROGRAM.match(case.name(at)) and tree.kinds[at] == int(FrameKind.OPERATOR) for at in around),
        _called(case, row, int(user[row])),
    )


def _loops(case: Case, source: Source | None, file: str, line: int) -> tuple[Block, ...]:
    loops = source.loops(line) if source is not None else []
    return tuple(one for one in loops if loop_of(case) is None or not case.is_step_loop(file, one.first))


def statement_at(source: Source | None, line: int) -> ast.stmt | None:
    """The innermost statement around a line; of one that holds others, its head only."""
    if source is None or source.tree is None:
        return None
    around = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def own_nodes(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without the statements inside of it."""
    found: list[ast.AST] = [statement]
    for name, value in ast.iter_fields(statement):
        if name not in _BODIES:
            for one in value if isinstance(value, list) else [value]:
                found += ast.walk(one) if isinstance(one, ast.AST) else ()
    return found


def _frames_at(case: Case, file: str, line: int) -> Mask:
    columns, strings = case.tree.frames, case.tree.tables.strings
    files = [row for row in np.unique(columns["file"]).tolist() if strings[row] == file]
    found: Mask = (columns["kind"] == int(FrameKind.PYTHON)) & (columns["line"] == line)
    found &= np.isin(columns["file"], files)
    return found


def loop_of(case: Case) -> Loop | None:
    """The loop; None where there is none, or one of too few steps."""
    try:
        return case.loop
    except CannotTell:
        return None


def _counted(case: Case) -> Mask:
    loop = loop_of(case)
    return np.ones(len(case.tree), np.bool_) if loop is None else loop.inside


def cost_of(case: Case) -> Rows:
    """Time and samples per node."""
    tree = case.tree
    time: Rows = np.maximum(tree.exclusive("time").sum, tree.exclusive("cpu_sample").sum)
    return np.maximum(time, tree.exclusive("gpu_time").sum)


def _on_loops_thread(case: Case) -> Mask:
    """Nodes of the thread that runs the loop, without lines that not every step comes to: those outside of the loop are
    set-up, whose time is none of a step's."""
    loop, thread = loop_of(case), case.analysis.scopes.thread
    if loop is None:
        return np.zeros(len(thread), np.bool_)
    found: Mask = (thread == thread[loop.anchors[0]]) & ~case.below(case.rare_lines)
    return found


def _operator_of(case: Case, rows: Rows, operators: Mask) -> str:
    """The operator that has most of the line's time; empty where Python has."""
    tree, cost = case.tree, cost_of(case)[rows]
    names = tree.frames["name"][tree.frame_of[rows[operators]]]  # a frame for each of its shapes
    found, first, group = np.unique(names, return_index=True, return_inverse=True)
    if not len(found):
        return ""
    sums = np.bincount(group.ravel(), cost[operators])
    best = int(np.argmax(sums))
    return case.name(int(rows[operators][first[best]])).rpartition(": ")[2] if sums[best] >= 0.5 * cost.sum() else ""


def _called(case: Case, row: int, user: int) -> tuple[str, ...]:
    """`("Image.filter", "GaussianBlur.filter")`: Python between the line and the node, the outermost first."""
    tree = case.tree
    return tuple(
        tree.text("name", int(tree.frame_of[at]))
        for at in tree.path_rows(row)
        if at > user and tree.kinds[at] == int(FrameKind.PYTHON)
    )
