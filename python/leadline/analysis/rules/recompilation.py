"""`recompilation`: torch.compile or jax.jit compiles the same function over and over."""

from __future__ import annotations

import numpy as np

from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.words import duration, percent
from leadline.schema import FrameKind

_COLD = 0.7
"""Of the operators of a step that compiles: it runs each piece of code for the first time, and its caches are full of
the compiler's. The Python between them may all be the compiler's, which first looks for code that fits, and so may
pauses of the collector, which looks through its objects."""


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
            needless = max(_again(case, row) for row in group.rows.tolist())
            if needless < values["times"] - 1 or (line is not None and origin(line.file) < Origin.PACKAGE):
                continue  # what a compiler builds on threads of its own is no function of the program's
            outside = max(0.0, case.loop.step_ns - case.loop.work_ns) * case.loop.steps  # with the collector's pauses
            again = int(group.value * (number - 1) / number)
            run = max(int(whole.sum(where=outer)) + case.total_ns, 1)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{_function(case, group.row)} was compiled {number} times, {percent(group.value / run)} of the "
                    "run",
                    case.gain_beside(
                        again,
                        (0.5, 0.9, 1),
                        "bound: all compilations but one, spread over the steps, and at most the Python around them "
                        "and most of what its operators take with cold caches",
                        outside + _COLD * max(case.total_ns - outside, 0.0),
                    ),
                    tuple(np.sort(group.rows)[:20].tolist()),
                    case.lines([group.row]),
                    (f"{duration(group.value / number)} a compilation, {number} in {case.loop.steps:,} steps",),
                    _advice(case, group.row),
                    self.learn_more,
                    group.value / run,
                )
            )
        return made[:2]


def _again(case: Case, row: int) -> int:
    """How often what is compiled at this node was compiled without need. A function of the program's needs one. An
    operation of JAX that runs by itself needs one for each of its calls in a step, as a line has many of them (one for
    each parameter); where it runs in few steps it is set-up."""
    number = int(case.tree.exclusive("call_time").count[row])
    detail = case.tree.node(row).detail
    if detail.get("of") != "jax":
        return number - 1
    runs = sum(
        int(case.tree.exclusive("call_time").count[other])
        for other in case.tree.shape.children(int(case.tree.parent[row])).tolist()
        if case.tree.node(other).name == f"jit({detail.get('function')})"
    )
    return 0 if 2 * runs < case.loop.steps else number - max(1, -(-runs // case.loop.steps))


def _function(case: Case, row: int) -> str:
    """What was compiled; JAX names it."""
    name = case.tree.node(row).detail.get("function")
    return f"{name}, called here," if name else "The function called here"


def _advice(case: Case, row: int) -> str:
    if "function" not in case.tree.node(row).detail:
        return (
            "See why with TORCH_LOGS=recompiles: numbers that change belong into tensors, sizes that change are marked "
            "with dynamic=True or torch._dynamo.mark_dynamic."
        )
    again = case.named(FrameKind.PHASE, "compiled again")
    changes = [
        str(case.tree.node(below).detail.get("change", ""))
        for below in np.flatnonzero(again).tolist()
        if _is_below(case, below, row)
    ]
    seen = f" ({changes[0]})" if changes and changes[0] else ""
    return (
        f"jax.jit compiles for each shape, type and static argument{seen}: pad to few sizes, pass numbers as arrays, "
        "or put a function that is called operation by operation under one jax.jit."
    )


def _is_below(case: Case, row: int, above: int) -> bool:
    while row > above:
        row = int(case.tree.parent[row])
    return row == above
