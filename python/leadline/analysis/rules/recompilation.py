"""`recompilation`: torch.compile or jax.jit compiles the same function over and over."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis.calls_in_source import user_trees
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits_listed
from leadline.schema import FrameKind
from leadline.units import duration, how_often, percent

_COLD = 0.7
"""Of the operators of a step that compiles: it runs each piece of code for the first time, and its caches are full of
the compiler's. The Python between them may all be the compiler's, which first looks for code that fits, and so may
pauses of the collector, which looks through its objects."""

_REMEDIES = {
    "function": "The function is a new object each time (a lambda, a def or a functools.partial inside the loop), "
    "and jax.jit compiles each object: create it once, outside of the loop.",
    "static": "A static argument has another value each time: take {name} out of static_argnums and static_argnames "
    "where it is only computed with, or keep to few values; jax.lax.fori_loop accepts an array as its number of "
    "iterations.",
    "weak": "A Python number is given in one call and an array in the other: give the same each time, such as "
    "jnp.float32(x); results of a program that go back into it need the type that they had at first.",
    "type": "The types of arguments change: convert them before the call (x.astype(jnp.float32)), so each has one.",
    "shape": "jax.jit compiles for each shape: pad to few sizes with a mask, leave out or fill up the last batch "
    "(drop_remainder=True), and give what grows a fixed length.",
    "structure": "jax.jit compiles for each structure of dicts, lists and other trees: give the same keys and lengths "
    "each time; None in the place of an array is another structure.",
    "placement": "Arguments come from other devices, or placed where they were not before: put them there once with "
    "jax.device_put and one sharding, the results of earlier steps included.",
}
"""What to do against each kind of reason that the JAX provider tells; `{name}`: of the argument."""
_SAME_SHAPES = "the same shapes"
"""How the change begins where JAX says that no argument has another shape or type."""
_ONE_JIT = "put what calls it operation by operation under one jax.jit"


class Recompilation(Rule):
    name = "recompilation"
    asks = "Does torch.compile or jax.jit compile the same function again and again?"
    options = (
        Option("times", 3, "1", "one for the first call and one for dynamic shapes is what a healthy program needs"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        phase = case.named(FrameKind.PHASE, "compile")
        if not phase.any():
            raise CannotTell("nothing was compiled")
        outer = case.first_of(phase)
        calls, whole = case.tree.exclusive("call_time"), case.tree.inclusive("time").sum
        made = []
        for group in case.by_line(outer, whole):
            number = int(calls.count[group.rows].max(initial=0))
            line = case.line(group.row)
            needless = max(case.compiled_needlessly(row, case.loop) for row in group.rows.tolist())
            if needless < values["times"] - 1 or (line is not None and origin(line.file) < Origin.PACKAGE):
                continue  # what a compiler builds on threads of its own is no function of the program's
            again = int(group.value * (number - 1) / number)
            left = max(0.0, case.total_ns - again)  # of the steps, which hold compiling again
            inside = min(left, case.loop.work_ns * case.loop.steps)
            outside = left - inside  # with the collector's pauses
            run = max(int(whole.sum(where=outer)) + case.total_ns - case.compiled_again_ns, 1)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{_function(case, group.row)} was compiled {number} times, {percent(group.value / run)} of the "
                    f"run{_why(case, group.row)}",
                    case.gain_sums(
                        (again * 0.5, again * 0.9, again + outside + _COLD * max(inside, 0.0)),
                        "bound: all compilations but one, spread over the steps, and at most the Python around them "
                        "and most of what its operators take with cold caches",
                    ),
                    tuple(np.sort(group.rows)[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(group.value / number)} a compilation, {number} in {case.loop.steps:,} steps",
                        *_told(case, group.row),
                    ),
                    _advice(case, group.row),
                    self.learn_more,
                    group.value / run,
                )
            )
        return made[:2]


def _function(case: Case, row: int) -> str:
    """What was compiled; JAX names it."""
    name = case.tree.node(row).detail.get("function")
    return str(name) if name else "A function"


def _advice(case: Case, row: int) -> str:
    if "function" not in case.tree.node(row).detail:
        return (
            "See why with TORCH_LOGS=recompiles: numbers that change belong into tensors, sizes that change are marked "
            "with dynamic=True or torch._dynamo.mark_dynamic."
        )
    reasons = _reasons(case, row)
    if reasons and str(reasons[0].get("kind")) in _REMEDIES:
        name = str(reasons[0].get("text", "")).partition(":")[0]
        return _REMEDIES[str(reasons[0].get("kind"))].replace("{name}", name)
    again = case.named(FrameKind.PHASE, "compiled again")
    changes = [
        str(case.tree.node(below).detail.get("change", ""))
        for below in np.flatnonzero(again).tolist()
        if _is_below(case, below, row)
    ]
    change = next(filter(None, changes), "")
    if change.startswith(_SAME_SHAPES):
        if not _is_defined(case, str(case.tree.node(row).detail.get("function"))):
            return f"{_ONE_JIT[:1].upper()}{_ONE_JIT[1:]}, or give it the same sizes and settings each time."
        return (
            "Take arguments with another value each time out of static_argnames and static_argnums (pass numbers as "
            f"arrays), and create the function once, outside of the loop; of a function of JAX's own, {_ONE_JIT}. All "
            "arguments have the shapes and types of the call before."
        )
    seen = f" ({change})" if change else ""
    static = "" if change else "take numbers out of static_argnames and pass them as arrays, "
    return f"jax.jit compiles for each static argument, shape and type{seen}: {static}pad to few sizes, or {_ONE_JIT}."


def _is_defined(case: Case, name: str) -> bool:
    """Whether the program's own files define a function of this name; where they cannot be read, by the name."""
    trees = [tree for _, tree in user_trees(case)]
    defined = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return name in defined or name == "<lambda>" if trees else not name.startswith("_")


def _why(case: Case, row: int) -> str:
    """` (beta: 0.0275, was 0.025)`; empty where it was not noted."""
    reasons = _reasons(case, row)
    return f" ({reasons[0]['text']})" if reasons and reasons[0].get("text") else ""


def _reasons(case: Case, row: int) -> list[Mapping[str, Any]]:
    """Why JAX compiled the function again, the most frequent first; empty where it was not noted."""
    name = case.tree.node(row).detail.get("function")
    noted = habits_listed(case, "recompiled", "jax")
    return sorted((one for one in noted if one.get("function") == name), key=lambda one: -int(one.get("times", 0)))


def _told(case: Case, row: int) -> tuple[str, ...]:
    """`5 times: x: float32[8,4], was float32[16,4]`."""
    return tuple(f"{how_often(int(one.get('times', 0)))}: {one.get('text')}" for one in _reasons(case, row)[:3])


def _is_below(case: Case, row: int, above: int) -> bool:
    while row > above:
        row = int(case.tree.parent[row])
    return row == above
