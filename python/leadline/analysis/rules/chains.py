"""Part of `kernel_fusion`: elementwise operators that follow one another on large tensors, on the CPU.

A chain is one computation: operators of one statement, or of adjacent lines of a function in the same loop with no
other work between. Operators on small tensors are no part of it: what they take is calling them, not memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, group_sums
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import tensor_shapes
from leadline.analysis.rules.pairs_reduced import ELEMENTWISE
from leadline.analysis.rules.words import listed
from leadline.analysis.sourcecode import Source
from leadline.units import percent

_LARGE = 1 << 15
"""Elements from which PyTorch splits an elementwise operator over threads; of fewer, the call takes most of it."""
_LONG_NS = 20_000
"""A call of an operator whose shapes are not known, and which is on a large tensor."""
_NEXT = 3
"""Lines from one to the next: a comment, or an argument on a line of its own, stands between at most."""
_OTHER = 0.1
"""Of the chain's time: a line between that takes more is other work."""
_FEWEST_KINDS = 3
_PLAIN = frozenset(("add", "sub", "mul", "div", "neg"))
_SAME = {"square": "pow", "rsqrt": "sqrt", "rsub": "sub", "reciprocal": "div", "var_mean": "var"}
_ONE_OPERATOR = (
    ("F.cross_entropy", ("log_softmax gather", "logsumexp gather", "exp sum log gather")),
    ("F.gelu", ("erf mul add", "tanh pow mul add", "tanh cubed mul add")),
    ("F.layer_norm", ("mean var sub sqrt", "mean var sub pow", "mean sub pow sqrt")),
    ("F.rms_norm", ("mean pow sqrt",)),
)
"""What PyTorch has one operator for: what is computed beside sums and products, in each way of writing it."""
_CUBED = 4
"""Products for each tanh where a cube is written as x * x * x."""


@dataclass(frozen=True)
class _Chain:
    """`rows`: its operators; `lines`: those they stand on; `length`: operators each time it runs."""

    rows: Rows
    lines: tuple[int, ...]
    length: int


def chains(case: Case, rule: str, learn_more: str, least: float, fewest: int) -> list[Finding]:
    """At most two; `least`: share of the step, `fewest`: operators."""
    wanted = case.operators(*ELEMENTWISE) & case.outer_operators & case.called_directly
    for phase in ("optimizer", "data loading", "compile", "backward"):
        wanted &= ~case.in_phase(phase)
    wanted &= (case.analysis.scopes.user >= 0) & _on_large_tensors(case, wanted)
    made = []
    for group in case.grouped(wanted, case.inclusive_time, case.code_function):
        if case.share(group.value) < least:
            break
        for one in _runs(case, group.rows):
            share = case.share(int(case.inclusive_time[one.rows].sum()))
            kinds = {case.name(int(row)) for row in one.rows[:200].tolist()}
            if share >= least and len(kinds) >= _FEWEST_KINDS and one.length >= fewest:
                made.append(_finding(case, rule, learn_more, one, share))
    return sorted(made, key=lambda one: -one.weight)[:2]


def _finding(case: Case, rule: str, learn_more: str, one: _Chain, share: float) -> Finding:
    order = one.rows[np.argsort(-case.inclusive_time[one.rows], kind="stable")]
    row = int(order[0])
    by = case.made_by(row)
    line = case.line(row)
    name = by.rpartition(" ")[2] if by else line.function if line is not None else ""
    first, last = one.lines[0], one.lines[-1]
    where = f"at line {first}" if first == last else f"at lines {first} to {last}"
    largest = max((math.prod(shape) for at in order[:20].tolist() for shape in tensor_shapes(case, at)), default=0)
    on = f" on {largest:,} elements" if largest else ""
    instead = _one_operator(case, one)
    compiling = "put torch.compile around the function"
    return Finding(
        rule,
        Severity.WARNING,
        f"A chain of {one.length} elementwise operators {where}{name and f' of {name}'} takes {percent(share)} of the "
        "step",
        case.gain(
            int(case.inclusive_time[one.rows].sum()),
            (0.1, 0.6, 1 - 1 / one.length),
            "bound: the chain with its backward pass, one operator in its place",
        ),
        tuple(order[:20].tolist()),
        case.lines(order.tolist()),
        (
            f"{listed(sorted({case.name(at) for at in one.rows[:200].tolist()}))}{on}: each reads and writes the whole "
            "tensor",
            *((f"in {by}",) if by else ()),
        ),
        f"Use {instead}, which computes the same in one operator, or {compiling}."
        if instead
        else f"{compiling[0].upper()}{compiling[1:]}, so that one operator computes the chain.",
        learn_more,
        share,
    )


def _on_large_tensors(case: Case, wanted: Mask) -> Mask:
    """By shapes where they were recorded, else by how long a call takes."""
    rows = np.flatnonzero(wanted)
    calls = case.tree.exclusive("call_time")
    large = calls.sum >= _LONG_NS * np.maximum(calls.count, 1)
    frames, first = np.unique(case.tree.frame_of[rows], return_index=True)  # one frame has one record of shapes
    for frame, row in zip(frames.tolist(), rows[first].tolist(), strict=True):
        if shapes := tensor_shapes(case, row):
            large[rows[case.tree.frame_of[rows] == frame]] = max(map(math.prod, shapes)) >= _LARGE
    return large


def _runs(case: Case, rows: Rows) -> Iterator[_Chain]:
    """Operators of one function that follow one another."""
    line = _lines(case)[rows]
    source = case.sources.of(case.tree.node(int(case.code[rows[0]])).file)
    spent = int(case.inclusive_time[rows].sum())
    run: list[int] = []
    for number, whole in _time_by_line(case, rows).items():
        mine = int(case.inclusive_time[rows[line == number]].sum())
        alone = whole > 2 * mine if mine else whole > _OTHER * spent  # it calls a model as well, or does other work
        far = bool(run) and (number - run[-1] > _NEXT or _loop(source, number) != _loop(source, run[-1]))
        if run and (alone or far):
            yield _chain(case, rows, line, run)
            run = []
        if mine and alone:
            yield _chain(case, rows, line, [number])
        elif mine:
            run.append(number)
    if run:
        yield _chain(case, rows, line, run)


def _lines(case: Case) -> Rows:
    """Per node the number of the line that calls it."""
    lines: Rows = case.tree.frames["line"].astype(np.int64)[case.tree.frame_of[case.code]]
    return lines


def _time_by_line(case: Case, rows: Rows) -> dict[int, int]:
    """The time of each line of the function that these operators are in, with all that it calls, in order of lines."""
    own = (case.code == np.arange(len(case.tree))) & (case.code_function == case.code_function[rows[0]])
    at = np.flatnonzero(own & (case.inclusive_time > 0))
    lines, group = np.unique(_lines(case)[at], return_inverse=True)
    sums = group_sums(group, case.inclusive_time[at], len(lines))
    return dict(zip(lines.tolist(), sums.tolist(), strict=True))


def _loop(source: Source | None, line: int) -> int:
    """Where the innermost loop around a line begins."""
    loops = source.loops(line) if source is not None else []
    return loops[-1].first if loops else 0


def _chain(case: Case, rows: Rows, line: Rows, lines: list[int]) -> _Chain:
    """The operators on these lines; the one that is called least says how often all of them ran."""
    here = rows[np.isin(line, lines)]
    calls = [sum(_calls(case, rows[line == number]).values()) for number in lines]
    least = min(least for number in lines for least in _calls(case, rows[line == number]).values())
    return _Chain(here, tuple(lines), round(sum(calls) / max(least, 1)))


def _calls(case: Case, rows: Rows) -> dict[str, int]:
    """By name of the operator."""
    calls: dict[str, int] = {}
    for row in rows.tolist():
        name = re.sub(r"^aten::_?|_$", "", case.name(row))
        calls[_SAME.get(name, name)] = calls.get(_SAME.get(name, name), 0) + int(case.calls[row])
    return calls


def _one_operator(case: Case, one: _Chain) -> str:
    """`F.gelu` where what these lines compute is that; empty where no operator computes all of it."""
    here = case.outer_operators & case.called_directly & case.loop.inside & ~case.in_phase("backward")
    here &= (case.code_function == case.code_function[one.rows[0]]) & np.isin(_lines(case), one.lines)
    calls = _calls(case, np.flatnonzero(here))
    computed = set(calls)
    if calls.get("mul", 0) >= _CUBED * calls.get("tanh", 0) > 0:
        computed.add("cubed")
    others = {_SAME.get(name, name) for name in (full.removeprefix("aten::") for full in ELEMENTWISE)} - _PLAIN
    for name, ways in _ONE_OPERATOR:
        if any(set(way.split()) <= computed and not computed & others - set(way.split()) for way in ways):
            return name
    return ""
