"""Part of `redundant_work`: what autograd recorded and no backward pass went back through.

The profiled process counts the calls that autograd records, operator by operator, and the backward operators behind
each. What is left over was recorded in vain: evaluation, teachers, target networks, features of a frozen part. It costs
time, and the memory of every result that is kept. Profiles that do not tell are asked what was alive at the peak.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, above, at_rows, group_sums, subtree_sums
from leadline.analysis.gains import RECORDING
from leadline.analysis.loop import is_setup
from leadline.analysis.rules.base import Case, Finding, Severity, Values
from leadline.schema import FrameKind
from leadline.steps.recorded import without_first_calls
from leadline.units import percent, size, times

_MANY = 6
"""Layers whose outputs must be kept in a program that trains nothing, before that is put down to autograd."""
_ALL = 0.95
"""Of what a line or module had recorded: then a backward pass is nothing it was made for. Single results that are not
used any further are everywhere."""
_PASS = 0.1
"""Of all calls of operators at a place, for it to be a recorded pass: one result may be kept in a graph on purpose
(caches of a Gaussian process) below `torch.no_grad()`."""
_OFTEN = 0.2
"""Of an operator's calls: evaluation by the same line as training, with this part of the batches."""
_CALLS = 3
"""Less can be calls whose backward pass was not measured: at the ends of a window, or of a file that rolls."""
_MEMORY = 0.2
"""Of the peak: more is worth a change whatever it takes."""
_MOST = 3


def recorded_in_vain(case: Case, rule: str, learn_more: str, values: Values) -> list[Finding]:
    """Forward passes, and lines outside of modules, that were recorded for nothing; the most important first."""
    if not is_told(case):
        return _kept_in_vain(case, rule, learn_more, values)
    vain = _vain(case)
    if not vain.calls.any():
        return []
    tree, shape = case.tree, case.tree.shape
    rows = _places(case, vain)
    recorded, calls = (subtree_sums(shape, column) for column in (vain.recorded, vain.calls))
    spent = subtree_sums(shape, vain.spent)
    alive = subtree_sums(shape, np.where(vain.forward, tree.exclusive("peak_live_bytes").sum, 0))
    peak = max(int(tree.exclusive("peak_live_bytes").sum.sum()), 1)
    part = calls / np.maximum(recorded, 1)
    concerned = np.where(rows, spent * part, 0).astype(np.int64)
    beside = int(concerned[rows & ~case.loop.inside].sum())
    made = []
    for group in case.by_line(rows, concerned):
        share = group.value / max(case.cost_of_all + beside, 1)
        held = int(alive[group.rows].sum())
        if share < values["info"]:
            break
        within, called = int(recorded[group.rows].sum()), int(calls[group.rows].sum())
        inside = bool(case.loop.inside[group.rows].any())
        basis = "estimate: recording, and memory that is not reused while it is warm, cost time"
        whole = f"{called:,} of {within:,} calls" if called < within else f"none of the {within:,} calls"
        made.append(
            Finding(
                rule,
                Severity.WARNING if max(share, held / peak * values["share"] / _MEMORY) >= values["share"]
                else Severity.INFO,
                f"{_what(case, group.row, spent)} is recorded for a backward pass that never runs, "
                + (f"{percent(share)} of {case.cost_name}" if inside else "outside of the loop of the steps"),
                case.gain(group.value, RECORDING, basis)
                if inside
                else case.no_gain("it is outside of the steps; its results are kept without use"),
                tuple(group.rows[:20].tolist()),
                case.lines([*_callers(case, group.row), *group.rows.tolist()]),
                (
                    f"{whole} that autograd recorded here {'have no' if called < within else 'has a'} backward pass",
                    *((f"{size(held)} of their results were alive at the peak, {percent(held / peak)} of it",)
                      if held * 100 >= peak else ()),
                ),
                "Put this computation below `with torch.no_grad():` (or torch.inference_mode()); detaching the result "
                "comes too late. Do not compute a result that is not used.",
                learn_more,
                max(share, held / peak) / 2,
            )
        )  # fmt: skip
    return made[:_MOST]


_RECORDS_ITSELF = r"/torch/distributions/"
"""Turns recording on for what it keeps, whatever the program has turned off."""


@dataclass(frozen=True)
class _Vain:
    """Per node: calls that autograd recorded, those without a backward pass, those of operators that have many such;
    nodes that belong to forward passes, and what they took themselves."""

    recorded: Rows
    calls: Rows
    often: Rows
    forward: Mask
    spent: Rows


def is_told(case: Case) -> bool:
    """Whether the process that was measured tells what autograd records."""
    meta = case.profile.meta
    records = [meta, *(one for one in meta.get("processes", []) if isinstance(one, dict))]
    torch = [one["available"].get("torch") for one in records if isinstance(one.get("available"), dict)]
    return any(isinstance(one, dict) and one.get("autograd") is True for one in torch)


def _vain(case: Case) -> _Vain:
    tree = case.tree
    backward = case.named(FrameKind.PHASE, "backward")
    left_out = case.in_phase("backward") | case.in_phase("recompute") | case.in_phase("compile") | is_setup(tree)
    left_out |= case.in_files(_RECORDS_ITSELF)
    recorded = np.where(left_out, 0, tree.exclusive("recorded").sum)
    passes = np.zeros(len(tree), np.int64)
    engine = np.flatnonzero(above(tree.shape, backward.astype(np.int64)) > 0)
    owner = tree.parent[tree.parent[engine]]
    np.maximum.at(passes, owner, tree.exclusive("call_time").count[engine])
    calls = np.maximum(recorded - passes, 0)
    often = np.where((calls >= _CALLS) & (calls >= _OFTEN * recorded), recorded, 0)
    if case.has_device:
        time = tree.exclusive("gpu_time").sum
    else:
        measured = tree.exclusive("time")
        trimmed = without_first_calls(measured.sum, measured.count, measured.max)
        time = np.where(case.loop.inside, case.time, trimmed)
    return _Vain(recorded, calls, often, ~left_out, np.where(left_out, 0, time))


def _places(case: Case, vain: _Vain) -> Mask:
    """Where `no_grad` would go: the outermost passes through modules, and lines of the user's that call operators
    outside of them, whose operators are nearly all recorded in vain."""
    tree, shape = case.tree, case.tree.shape
    candidate = case.named(FrameKind.PHASE, "forward") | (tree.kinds == int(FrameKind.MODULE))
    users = at_rows(np.arange(len(tree)), case.analysis.scopes.user)
    candidate[np.unique(users[(vain.recorded > 0) & (users >= 0)])] = True
    often, recorded = subtree_sums(shape, vain.often), subtree_sums(shape, vain.recorded)
    operators = case.first_of((tree.kinds == int(FrameKind.OPERATOR)) & vain.forward)
    calls = subtree_sums(shape, np.where(operators, case.calls, 0))
    wrong = candidate & vain.forward & (recorded > 0) & (often >= _ALL * recorded) & (recorded >= _PASS * calls)
    # what always goes backward is trained: the others are candidates of which one is chosen, as the hardest of a batch
    trained = (vain.recorded >= _CALLS) & (vain.calls == 0)
    return case.first_of(wrong & (subtree_sums(shape, trained.astype(np.int64)) == 0))


def _callers(case: Case, row: int) -> list[int]:
    """The place itself where it is a line, else what calls the module."""
    return [row if case.tree.kinds[row] == int(FrameKind.PYTHON) else max(int(case.tree.parent[row]), 0)]


def _what(case: Case, row: int, spent: Rows) -> str:
    """The module that takes at least half of what the place does, else the function."""
    below = case.below_row(row)
    modules = case.first_of(case.mask([row]) & (case.tree.kinds == int(FrameKind.MODULE)))[below]
    if modules.any():
        module = int(below[modules][np.argmax(spent[below[modules]])])
        if spent[module] * 2 >= spent[row]:
            return f"The forward pass of {case.name(module)}"
    return f"What {case.function(row)} computes here" if case.function(row) else "A forward pass"


def _kept_in_vain(case: Case, rule: str, learn_more: str, values: Values) -> list[Finding]:
    """Forward passes without a backward pass whose layers' outputs were all alive at the peak."""
    tree, loop = case.tree, case.loop
    backward = case.named(FrameKind.PHASE, "backward")
    alive = tree.exclusive("peak_live_bytes").sum
    calls = tree.exclusive("alloc_bytes").count
    if not alive.any():
        return []
    here = loop.inside.copy()
    here[tree.path_rows(loop.root)] = True  # where nothing but the model repeats, its forward is around the loop
    forward = case.first_of(case.named(FrameKind.PHASE, "forward") & here)
    top = case.outermost(forward)
    has_backward = group_sums(top, backward.astype(np.int64), len(tree)) > 0
    layers = (alive > 0) & (top >= 0) & (calls > 0) & (at_rows(case.analysis.scopes.module, np.arange(len(tree))) >= 0)
    each = np.where(layers, tree.exclusive("alloc_bytes").sum // np.maximum(calls, 1), 0)
    kept = layers & (alive >= each // 2) & (alive <= 2 * each)
    ones = np.ones(len(tree), np.int64)
    number = group_sums(np.where(kept, top, -1), ones, len(tree))
    if not backward.any():  # nothing is trained: skip connections and caches keep some outputs, autograd keeps all
        of = group_sums(np.where(layers_that_allocate(case), top, -1), ones, len(tree))
        kept &= (at_rows(number, top, 0) >= values["all"] * at_rows(of, top, 0)) & (at_rows(number, top, 0) >= _MANY)
        number = group_sums(np.where(kept, top, -1), ones, len(tree))
    held = group_sums(np.where(kept, top, -1), alive, len(tree))
    wrong = forward & ~has_backward & (number >= values["held"]) & (held * 5 >= int(alive.sum()))
    made = []
    for group in case.by_line(wrong, held):
        row = int(above(tree.shape, np.arange(len(tree)))[group.row])
        ns = int(case.inclusive_time[group.rows].sum())
        made.append(
            Finding(
                rule,
                Severity.WARNING,
                f"A forward pass without a backward pass keeps {size(group.value)} for one",
                case.gain(
                    ns,
                    RECORDING,
                    "estimate: mainly memory; recording, and memory that is not reused, cost time",
                ),
                tuple(group.rows[:20].tolist()),
                case.lines([row]),
                (
                    f"{times(float(number[group.row]))} layers' outputs were alive at the peak, "
                    f"{percent(held[group.row] / max(int(alive.sum()), 1))} of it",
                    "no operator below this line has a backward pass",
                ),
                "Put this computation below `with torch.no_grad():` (or torch.inference_mode()).",
                learn_more,
                group.value / max(int(alive.sum()), 1) / 2,
            )
        )
    return made[:1]


def layers_that_allocate(case: Case) -> Mask:
    """Operators that allocate in each pass through their layer, and whose results are as large as others': outputs."""
    calls, sums = (getattr(case.tree.exclusive("alloc_bytes"), name) for name in ("count", "sum"))
    large = sums // np.maximum(calls, 1)
    inside = (calls > 0) & (case.analysis.scopes.module >= 0) & case.loop.inside
    usual = int(np.median(large[inside])) if inside.any() else 0
    found: Mask = inside & (large >= usual // 4)
    return found
