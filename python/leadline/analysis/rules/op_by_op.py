"""`op_by_op`: the loop runs many operations of JAX one by one, outside of `jax.jit`."""

from __future__ import annotations

import ast

import numpy as np

from leadline.analysis.columns import Mask, Rows, at_rows, factorized, nearest
from leadline.analysis.findings import Line
from leadline.analysis.functions import METRIC, imports
from leadline.analysis.loop import is_setup
from leadline.analysis.rules.base import Case, Finding, Gain, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import by_themselves, compiling, programs
from leadline.analysis.rules.words import listed
from leadline.steps.jax_programs import function_of
from leadline.units import duration, percent, times

_OFTEN = 500
"""Operations in a whole run; set-up takes some hundred."""
_MOST = 0.5
"""Of what the loop dispatches, where no clock tells how much of a step that is."""


_DONATE = (
    " Each `x.at[i].set(v)` copies all of x: pass x as an argument, name it in donate_argnums and return the new one, "
    "or keep such a buffer in NumPy."
)


class OpByOp(Rule):
    name = "op_by_op"
    asks = "Does the loop run operations of JAX one by one, outside of jax.jit?"
    options = (
        Option("per_step", 8, "1", "a few (splitting a key, a mean to print) are normal"),
        Option("share", 5, "%", "of the step in these operations and in calling them; less is not worth a change"),
        Option("warning", 20, "%", "above this, calls take more of the step than work"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        if case.known_loop is None:
            return _of_run(case, self.name, self.learn_more, values)
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
            kinds = _kinds(case, rows, case.calls)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if case.loop.measured_by and share >= values["warning"] else Severity.INFO,
                    f"{_plain(case.function(group.row))} runs {times(number)} operations of JAX a step one by one, "
                    "outside of jax.jit",
                    case.gain_of(
                        group.rows,
                        ns,
                        (0.3, 0.8, 1),
                        "bound: these operations and calling them; one program does what they do and is called once",
                    ),
                    tuple(rows[:20].tolist()),
                    case.lines(rows.tolist()),
                    (f"{kinds}; {_cost(case, group.value, ns, python, share)}",),
                    _remedy(case, group.row, kinds),
                    self.learn_more,
                    share,
                    fix=_fix(case, group.row),
                )
            )
        return made[:3]


def _of_run(case: Case, rule: str, learn_more: str, values: Values) -> list[Finding]:
    """Where nothing marks a step: a run that is made of single operations."""
    tree, scopes = case.tree, case.analysis.scopes
    count = tree.exclusive("call_time").count
    every = programs(case)
    alone = by_themselves(case, np.ones(len(tree), np.bool_)) & (scopes.user >= 0) & ~is_setup(tree)
    alone &= _repeats(case)
    number = int(count[alone].sum())
    if number < _OFTEN or number < _MOST * int(count[every].sum()):
        return []
    rows = np.flatnonzero(alone & (count > 0))
    of_line = np.bincount(scopes.user[rows], count[rows])[scopes.user[rows]]
    rows = rows[np.lexsort((-count[rows], -of_line))]
    thread = int(scopes.thread[rows[0]])
    wall = next((one.wall_ns for one in case.profile.threads if one.node.row == thread), 0)
    between = (scopes.thread == thread) & (scopes.inner < 0) & ~imports(tree) & ~case.in_phase("compile")
    python = int(tree.exclusive(METRIC).sum[between].sum())
    work = int(tree.inclusive("time").sum[rows].sum())
    compiled = sum(compiling(case, name)[1] for name in {function_of(case.name(row)) for row in rows.tolist()})
    share = min((python + work + compiled) / wall, 1.0) if wall > 0 else 0.0
    if share < values["share"]:
        return []
    low, expected, high = (int(part * share * wall) for part in (0.3, 0.8, 1))
    return [
        Finding(
            rule,
            Severity.WARNING if share >= values["warning"] else Severity.INFO,
            f"{number:,} operations of JAX run one by one, outside of jax.jit, {percent(share)} of the run",
            Gain(low, expected, high, "bound: these operations and the Python around them", "run", wall),
            tuple(rows[:20].tolist()),
            case.lines(rows.tolist()),
            (
                f"{_kinds(case, rows, count)}; {duration(work)} of work, {duration(python)} of Python (sampled), "
                f"{duration(compiled)} to compile each of them",
            ),
            "Make one program of the step: wrap the function that these lines are in or call in jax.jit, once, before "
            "the loop (its gradient too: jax.jit(jax.value_and_grad(loss))); dispatch is then paid once a step.",
            learn_more,
            share,
        )
    ]


def _repeats(case: Case) -> Mask:
    """Nodes below a line in a loop of the program, or in source that cannot be read: the rest is set-up."""
    tree, user = case.tree, case.analysis.scopes.user
    lines: Rows = np.unique(user[user >= 0])
    in_loop = np.zeros(len(tree), np.bool_)
    for row in lines.tolist():
        node = tree.node(row)
        source = case.sources.of(node.file)
        in_loop[row] = source is None or any(block.kind == "loop" for block in source.loops(node.line))
    found: Mask = nearest(tree.shape, in_loop) >= 0
    return found


def _user_function(case: Case) -> Rows:
    """For every node a number that it shares with the nodes of the same function of the user's."""
    columns = case.tree.frames
    functions = factorized(*(columns[name].astype(np.int64) for name in ("file", "name", "first_line")))
    return at_rows(functions[case.tree.frame_of], case.analysis.scopes.user)


def _kinds(case: Case, rows: Rows, calls: Rows) -> str:
    """`multiply, add and subtract`: the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows.tolist():
        name = function_of(case.name(row))
        counts[name] = counts.get(name, 0) + int(calls[row])
    return listed(sorted(counts, key=lambda name: -counts[name]))


def _cost(case: Case, number: int, ns: int, python: float, share: float) -> str:
    if not case.loop.measured_by:
        return f"{duration(ns / number)} of work each, and what calling them takes is not known"
    return (
        f"about {duration((ns + python) / number)} each, of which {duration(ns / number)} are work: "
        f"{percent(share)} of the step"
    )


def _remedy(case: Case, row: int, kinds: str) -> str:
    return _compile(case, row) + (_DONATE if "scatter" in kinds or "dynamic_update_slice" in kinds else "")


def _compile(case: Case, row: int) -> str:
    by = case.made_by(row)
    if by:
        return (
            f"Call what runs them ({by}) inside of a function under @jax.jit, so that they become one program that is "
            "dispatched once."
        )
    line = case.line(row)
    if line is None or not line.function:
        return "Move these lines into a function under @jax.jit, so that they become one program, dispatched once."
    if _changes_its_object(case, line):
        return (
            f"Write {_plain(line.function)} as a function of parameters, optimizer state and batch that returns the "
            "new ones, and put @jax.jit on that: they become one program, dispatched once. A compiled method would "
            "change its object only while it is traced."
        )
    return (
        f"Put @jax.jit on {_plain(line.function)} (or on the whole step that calls it), so that they become one "
        "program, dispatched once; what it decides with `if` belongs into static arguments or jax.lax.cond."
    )


def _changes_its_object(case: Case, line: Line) -> bool:
    """Whether it is a method that assigns to `self.params`."""
    source = case.sources.of(line.file)
    function = source.function(line.line) if source is not None else None
    if not isinstance(function, ast.FunctionDef) or not function.args.args or function.args.args[0].arg != "self":
        return False
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(function)
    )


def _plain(function: str) -> str:
    """`train_step` of `main.<locals>.train_step`."""
    return function.rpartition(".<locals>.")[2]


def _fix(case: Case, row: int) -> str:
    """Of a function of the program, unless it holds the loop; what a package runs cannot be compiled from outside."""
    line = None if case.made_by(row) else case.line(row)
    return f"jit={line.function}" if line and line.function.isidentifier() and not line.context else ""
