"""`op_by_op`: the loop runs many operations of JAX one by one, outside of `jax.jit`."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Rows, at_rows, factorized
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import by_themselves, function, programs
from leadline.analysis.rules.words import listed
from leadline.units import duration, percent, times

_MOST = 0.5
"""Of what the loop dispatches, where no clock tells how much of a step that is."""


class OpByOp(Rule):
    name = "op_by_op"
    asks = "Does the loop run operations of JAX one by one, outside of jax.jit?"
    options = (
        Option("per_step", 8, "1", "a few (a key that is split, a mean to print) are in every good loop"),
        Option("share", 5, "%", "of the step in these operations and in calling them; less is not worth a change"),
        Option("warning", 20, "%", "from there on the step is made of calls rather than of work"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        alone = by_themselves(case)
        every = int(case.calls[programs(case)].sum())
        made = []
        for group in case.grouped(alone & (case.user_line >= 0), case.calls, _user_function(case)):
            number = case.per_step(group.value)
            if number < values["per_step"]:
                break
            ns = int(case.inclusive_time[group.rows].sum())
            python = case.python_ns(case.mask(group.rows))
            share = case.share(ns + python)
            if share < values["share"] or (not case.loop.measured_by and group.value < _MOST * every):
                continue
            rows = group.rows[np.argsort(-case.calls[group.rows], kind="stable")]
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if case.loop.measured_by and share >= values["warning"] else Severity.INFO,
                    f"{case.function(group.row)} runs {times(number)} operations of JAX a step one by one, outside of "
                    "jax.jit",
                    case.gain_of(
                        group.rows,
                        ns,
                        (0.3, 0.8, 1),
                        "bound: these operations and calling them; one program does what they do and is called once",
                    ),
                    tuple(rows[:20].tolist()),
                    case.lines(rows.tolist()),
                    (f"{_kinds(case, rows)}; {_cost(case, group.value, ns, python, share)}",),
                    _remedy(case, group.row),
                    self.learn_more,
                    share,
                )
            )
        return made[:3]


def _user_function(case: Case) -> Rows:
    """For every node a number that it shares with the nodes of the same function of the user's."""
    columns = case.tree.frames
    functions = factorized(*(columns[name].astype(np.int64) for name in ("file", "name", "first_line")))
    return at_rows(functions[case.tree.frame_of], case.analysis.scopes.user)


def _kinds(case: Case, rows: Rows) -> str:
    """`multiply, add and subtract`: the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows.tolist():
        name = function(case.name(row))
        counts[name] = counts.get(name, 0) + int(case.calls[row])
    return listed(sorted(counts, key=lambda name: -counts[name]))


def _cost(case: Case, number: int, ns: int, python: float, share: float) -> str:
    if not case.loop.measured_by:
        return f"{duration(ns / number)} of work each, and what calling them takes is not known"
    return (
        f"about {duration((ns + python) / number)} each, of which {duration(ns / number)} are work: "
        f"{percent(share)} of the step"
    )


def _remedy(case: Case, row: int) -> str:
    by = case.made_by(row)
    if by:
        return (
            f"Call what runs them ({by}) inside of a function under @jax.jit, so that they become one program that is "
            "dispatched once."
        )
    line = case.line(row)
    if line is None or not line.function:
        return "Move these lines into a function under @jax.jit, so that they become one program, dispatched once."
    return (
        f"Put @jax.jit on {line.function} (or on the whole step that calls it), so that they become one program, "
        "dispatched once; what it decides with `if` belongs into static arguments or jax.lax.cond."
    )
