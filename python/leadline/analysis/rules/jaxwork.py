"""What rules about JAX ask of a profile: calls of compiled programs, whose functions they are, and notes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis.columns import Mask, subtree_sums
from leadline.analysis.rules.base import CannotTell, Case
from leadline.analysis.rules.habits import habits_listed
from leadline.schema import FrameKind

_PROGRAM = r"^(jit|pjit|pmap)\("


def programs(case: Case) -> Mask:
    """Calls of compiled programs, such as `jit(train_step)`; raises CannotTell where there is none."""
    found = case.matching(FrameKind.OPERATOR, _PROGRAM)
    if not found.any():
        raise CannotTell("no program of JAX was run")
    return case.first_of(found)


def function(name: str) -> str:
    """`train_step` of `jit(train_step)`."""
    return name.partition("(")[2].removesuffix(")")


def by_themselves(case: Case) -> Mask:
    """Calls in the loop of operations that JAX runs one by one: `jit(add)` of an addition outside of any `jax.jit`.
    They were compiled by JAX for itself, and hold no line of the program's."""
    called = programs(case) & case.loop.inside
    python = case.tree.kinds == int(FrameKind.PYTHON)
    with_lines = subtree_sums(case.tree.shape, python.astype(np.int64)) > 0
    timed = subtree_sums(case.tree.shape, np.ones(len(case.tree), np.int64)) > 1
    of_jax, of_program = _compiled(case)
    rows = np.flatnonzero(called & ~with_lines)
    found = np.zeros(len(case.tree), np.bool_)
    for frame in np.unique(case.tree.frame_of[rows]).tolist():
        name = function(case.tree.text("name", frame))
        here = rows[case.tree.frame_of[rows] == frame]
        found[here] = name not in of_program and ((name in of_jax) | timed[here])
    return found


def _compiled(case: Case) -> tuple[set[str], set[str]]:
    """Functions that JAX compiled for itself, and those of the program."""
    found: tuple[set[str], set[str]] = (set(), set())
    rows = np.flatnonzero(case.named(FrameKind.PHASE, "compile"))
    _, first = np.unique(case.tree.frame_of[rows], return_index=True)
    for row in rows[first].tolist():
        detail = case.tree.node(row).detail
        if name := detail.get("function"):
            found[detail.get("of") != "jax"].add(str(name))
    return found


def told(case: Case, name: str) -> list[Mapping[str, Any]]:
    """What was noted of programs under that name, of all processes; raises CannotTell where none ran."""
    programs(case)
    return [one for listed in habits_listed(case, name, "jax") for one in listed]
