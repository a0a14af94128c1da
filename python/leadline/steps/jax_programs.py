"""Who asked JAX to compile a function: the program by jax.jit, or JAX itself for a single operation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Tree
from leadline.schema import FrameKind

Rows = NDArray[np.int64]
PROGRAM = r"^(jit|pjit|pmap)\("
"""How calls of compiled programs are named, as operators."""


def compiled_functions(tree: Tree) -> tuple[set[str], set[str]]:
    """Names of functions that JAX compiled for itself (`add` of an addition), and of those of the program."""
    found: tuple[set[str], set[str]] = (set(), set())
    rows = np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of])
    _, first = np.unique(tree.frame_of[rows], return_index=True)
    for row in rows[first].tolist():
        detail = tree.node(row).detail
        if name := detail.get("function"):
            found[detail.get("of") != "jax"].add(str(name))
    return found


def differentiated(tree: Tree) -> set[tuple[int, str]]:
    """Where (a node) JAX runs a function of the program's and, for itself, another of its name: the derivative. Each
    call of `jax.grad` of a jitted function runs both."""
    asked: dict[tuple[int, str], set[bool]] = {}
    for row in np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]).tolist():
        detail = tree.node(row).detail
        if name := detail.get("function"):
            asked.setdefault((int(tree.parent[row]), str(name)), set()).add(detail.get("of") != "jax")
    return {place for place, by in asked.items() if len(by) == 2}


def turns_of(tree: Tree, rows: np.ndarray, programs: set[str]) -> list[int]:
    """Of phases that hold iterations' lengths those of these programs; the empty name: from batch to batch."""
    return [row for row in rows.tolist() if str(tree.node(row).detail.get("of", "")) in programs]


def waits_for_many(tree: Tree, turns: Rows, spared: Rows, programs: Rows) -> bool:
    """Whether the longest of these iterations waited for the work of others, and is no accident. A call returns before
    its program has run, and the work of many is waited for in one place: the others, which take `spared`, take less
    time than the programs' operations, or are not alike."""
    calls = tree.exclusive("call_time")
    count = max(int(calls.count[turns].sum()), 1)
    mean = float(spared.sum()) / count
    squares = float(calls.sum_squares[turns].sum()) - float((calls.max[turns].astype(float) ** 2).sum())
    work = float(tree.inclusive("time").sum[programs].sum()) / count
    return work > mean or squares / max(count - len(turns), 1) > 2 * mean**2


def time_of(tree: Tree, rows: Rows, turns: Rows) -> Rows:
    """The time below each row of the tree; of `rows` that are calls of programs whose runs were counted and not timed:
    the time from call to call (`turns`), by their number."""
    time, calls = tree.inclusive("time").sum.copy(), tree.exclusive("call_time")
    untimed = [row for row in rows.tolist() if not time[row]]
    for name in {function_of(tree.node(row).name) for row in untimed}:
        same = [row for row in untimed if function_of(tree.node(row).name) == name]
        told = turns_of(tree, turns, {name})
        for row in same if told else ():
            time[row] = int(calls.sum[told].sum() * calls.count[row] / max(int(calls.count[same].sum()), 1))
    found: Rows = time
    return found


def function_of(name: str) -> str:
    """`train_step` of `jit(train_step)`."""
    return name.partition("(")[2].removesuffix(")")
