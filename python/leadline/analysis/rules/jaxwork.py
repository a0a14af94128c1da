"""What rules about JAX ask of a profile: calls of compiled programs, whose functions they are, and notes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis.columns import Mask, Rows, subtree_sums
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Line
from leadline.analysis.rules.habits import habits_listed
from leadline.schema import FrameKind
from leadline.steps.jax_programs import PROGRAM, compiled_functions, function_of


def programs(case: Case) -> Mask:
    """Calls of compiled programs, such as `jit(train_step)`; raises CannotTell where there is none."""
    found = case.matching(FrameKind.OPERATOR, PROGRAM)
    if not found.any():
        raise CannotTell("no program of JAX was run")
    return case.first_of(found)


def by_themselves(case: Case, where: Mask | None = None) -> Mask:
    """Calls in the loop (or `where`) of operations that JAX runs one by one: `jit(add)` of an addition outside of any
    `jax.jit`. They were compiled by JAX for itself, or hold no line of the program's."""
    called = programs(case) & (case.loop.inside if where is None else where)
    python = case.tree.kinds == int(FrameKind.PYTHON)
    with_lines = subtree_sums(case.tree.shape, python.astype(np.int64)) > 0
    timed = subtree_sums(case.tree.shape, np.ones(len(case.tree), np.int64)) > 1
    of_jax, of_program = compiled_functions(case.tree)
    rows = np.flatnonzero(called)
    found = np.zeros(len(case.tree), np.bool_)
    for frame in np.unique(case.tree.frame_of[rows]).tolist():
        name = function_of(case.tree.text("name", frame))
        here = rows[case.tree.frame_of[rows] == frame]
        # a gradient's operations hold the lines of what they are the gradient of
        found[here] = name not in of_program and ((name in of_jax) | (timed[here] & ~with_lines[here]))
    return found


def calls_of(case: Case, name: str) -> Rows:
    """Calls of the program of a function, wherever they stand."""
    tree = case.tree
    called = programs(case)
    frames = np.flatnonzero(tree.frames["kind"] == int(FrameKind.OPERATOR))
    wanted = [frame for frame in frames.tolist() if function_of(tree.text("name", frame)) == name]
    return np.flatnonzero(called & np.isin(tree.frame_of, wanted))


def compiling(case: Case, name: str) -> tuple[Rows, int]:
    """Phases in which a function was compiled, and their time in ns."""
    outer = case.first_of(case.named(FrameKind.PHASE, "compile"))
    rows = [row for row in np.flatnonzero(outer).tolist() if case.tree.node(row).detail.get("function") == name]
    found = np.array(rows, np.int64)
    return found, int(case.tree.inclusive("time").sum[found].sum())


def run_ns(case: Case) -> int:
    """Compilation and steps together: what a program that does little else takes."""
    outer = case.first_of(case.named(FrameKind.PHASE, "compile"))
    loop = case.known_loop
    steps = int(loop.step_ns * loop.steps) if loop is not None else 0
    return int(case.tree.inclusive("time").sum[outer].sum()) + steps


def frames_of(note: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """(file, line, function) of a note, the innermost first."""
    found = []
    for frame in note.get("frames") or ():
        if isinstance(frame, list) and len(frame) == 3 and isinstance(frame[1], int):
            found.append((str(frame[0]), frame[1], str(frame[2])))
    return found


def lines_of(case: Case, note: Mapping[str, Any]) -> tuple[Line, ...]:
    """The innermost line of the user's own code in a note; of a package where there is none."""
    frames = frames_of(note)
    for least in (Origin.USER, Origin.PACKAGE):
        for file, line, name in frames:
            if origin(file) >= least:
                return (case.line_at(file, line, name),)
    return ()


def program_facts(case: Case, name: str) -> list[Mapping[str, Any]]:
    """What was noted of programs under that name, of all processes; raises CannotTell where none ran."""
    programs(case)
    return habits_listed(case, name, "jax")
