"""Part of `redundant_work`: passes that are made again: several backward passes through one forward pass, forward
passes done twice by checkpointing, and models that see in each turn all that they saw in the one before.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import replace
from leadline.analysis.calls_in_source import lines_that_call, unique_lines
from leadline.analysis.columns import Mask, above, at_rows, group_sums, nearest
from leadline.analysis.rules.backward_lines import backward_lines
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.profiles.measures import Measures
from leadline.schema import FrameKind
from leadline.units import duration, percent, size, times

_ENGINE = r"^autograd::engine::evaluate_function: "
_WEIGHTED = ("aten::addmm", "aten::mm", "aten::linear", "aten::convolution")
"""Products with a layer's weights: their results are as many as there are tokens, whatever is remembered of others."""
_TWICE = 1.9
_CARRIED = (
    "detach() a state that goes from step to step (an RNN's hidden state): with retain_graph=True each backward pass "
    "goes through all steps before. "
)
_TURNS = 20
_GENERATIONS = 8
"""As many texts may have been generated one after the other, all of one length."""


def passes_again(case: Case, rule: str, learn_more: str, share: float, info: float) -> list[Finding]:
    """At most one finding of each kind."""
    made = (
        _backward(case, rule, learn_more, share),
        _checkpoints(case, rule, learn_more, info),
        _longer(case, rule, learn_more, share),
    )
    return [one for one in made if one is not None]


def _backward(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """Backward operators that ran several times for each call of what they belong to. Where there are gradients of
    gradients, the second pass is asked for."""
    tree = case.tree
    phases = case.named(FrameKind.PHASE, "backward") & case.loop.inside
    first = case.first_of(phases)
    engine = case.matching(FrameKind.OPERATOR, _ENGINE) & ~case.matching(FrameKind.OPERATOR, "AccumulateGrad")
    pass_of = nearest(tree.shape, phases)
    owner_of = at_rows(case.analysis.scopes.inner, above(tree.shape, np.arange(len(tree))))
    rows = np.flatnonzero(engine & (case.calls > 0) & at_rows(first, pass_of, 0).astype(np.bool_))
    owner = owner_of[pass_of[rows]]
    rows, owner = rows[owner >= 0], owner[owner >= 0]
    higher = group_sums(case.outermost(phases), (phases & ~first).astype(np.int64), len(tree)) > 0
    kept = ~higher[at_rows(pass_of, rows)] & (case.calls[owner] > 0)
    rows, owner = rows[kept], owner[kept]
    if not len(rows):
        return None
    # An operator may have several of one kind behind it, but not of every kind.
    often = np.full(len(tree), np.inf)
    np.minimum.at(often, owner, case.calls[rows] / case.calls[owner])
    again = np.flatnonzero(np.isfinite(often) & (often >= _TWICE))
    if not len(again):
        return None
    behind = np.flatnonzero(first & np.isin(owner_of, again))
    holder = owner_of[behind]
    cost = case.cost_with_all_below[behind]
    ns = int((cost * (1 - 1 / often[holder])).sum())
    share = ns / max(case.cost_of_all, 1)
    if share < least:
        return None
    most = float(np.average(often[holder], weights=np.maximum(cost, 1)))
    asked = backward_lines(case)
    asked = asked[np.argsort(-case.calls[asked], kind="stable")]
    kept_graph = lines_that_call(case, (), keyword="retain_graph", most=1)
    order = behind[np.argsort(-cost, kind="stable")]
    return Finding(
        rule,
        Severity.WARNING,
        f"The same forward pass has {times(most)} backward passes, {percent(share)} of {case.cost_name}",
        case.gain_of(order, ns, (0.5, 1, 1.2), "bound: these backward passes but one"),
        tuple(order[:20].tolist()),
        unique_lines([*kept_graph, *case.lines([*asked[:10].tolist(), *order.tolist()], 2)]),
        (f"{len(again)} operators have {times(most)} backward passes for each of their calls",
         f"{duration(case.per_step(ns))} a step"),
        _CARRIED * bool(kept_graph)
        + "Add the losses up and call backward() once: the gradient of a sum is the sum of the gradients. "
        " Where each is needed by itself, torch.autograd.grad(..., is_grads_batched=True) computes them "
        "together.",
        learn_more,
        share,
    )  # fmt: skip


def _checkpoints(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """What checkpointing computes a second time; whether memory needs it is the reader's to say."""
    recompute = case.named(FrameKind.PHASE, "recompute") & case.loop.inside
    near = nearest(case.tree.shape, recompute | case.named(FrameKind.PHASE, "backward"))
    below = at_rows(recompute, near, 0) > 0  # without backward passes of what was computed again
    again = case.first_of(recompute)
    ns = int((case.gpu_time if case.has_device else case.time)[below].sum())
    share = ns / max(case.cost_of_all, 1)
    if share < least or not again.any():
        return None
    rows = np.flatnonzero(again)
    forward = np.flatnonzero(below & (case.calls > 0))
    peaks = case.analysis.peaks
    held = f"; the most memory alive was {size(peaks[0].held)}" if peaks else ""
    return Finding(
        rule,
        Severity.INFO,
        f"Checkpointing computes forward passes again, {percent(share)} of {case.cost_name}",
        case.gain_of(forward, ns, (0.6, 1, 1.2), "bound: the second forward passes"),
        tuple(rows[:20].tolist()),
        case.lines(rows.tolist()),
        (f"{duration(case.per_step(ns))} a step{held}",),
        "Leave it out, or out of every second block, where a step fits without it: it trades time for memory.",
        learn_more,
        share,
    )


def _longer(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """Layers whose results grow by the same at each call, in a program that trains nothing: each turn computes what all
    before it have computed. With what was computed kept, a layer sees the new token alone."""
    if case.in_phase("backward").any():
        return None
    tree = case.tree
    scopes = case.analysis.scopes
    layers = case.operators(*_WEIGHTED) & (scopes.module >= 0)
    sizes = _of_all_shapes(case, layers)
    grows = layers & even_growth(sizes)
    top = case.outermost((tree.kinds == int(FrameKind.MODULE)) & case.loop.inside)
    rows = np.unique(top[np.flatnonzero(grows & (top >= 0))])
    ns = int(case.cost_with_all_below[rows].sum())
    share = ns / max(case.cost_of_all, 1)
    if not len(rows) or share < least:
        return None
    row = int(np.flatnonzero(grows)[np.argmax(sizes.sum[grows])])
    low, high, count = int(sizes.min[row]), int(sizes.max[row]), int(sizes.count[row])
    spared = 1 - (high - low) / max(count - 1, 1) / max(float(sizes.sum[row]) / count, 1.0)
    return Finding(
        rule,
        Severity.WARNING,
        f"Each iteration computes again what earlier iterations computed, {percent(share)} of {case.cost_name}",
        case.gain_of(rows, ns, (0.3 * spared, 0.7 * spared, 1), "estimate: weights are still read, the rest is saved"),
        tuple(rows[:20].tolist()),
        case.lines(np.maximum(tree.shape.parent[rows], 0).tolist()),
        (f"the results of its layers grow equally in each of {count:,} iterations, from {size(low)} to {size(high)}",),
        "Cache keys and values and give the model only the new token (in transformers "
        "use_cache=True and past_key_values).",
        learn_more,
        share,
    )  # fmt: skip


def _of_all_shapes(case: Case, layers: Mask) -> Measures:
    """Bytes of the results of a layer's operator: where shapes are kept, each shape is a node of its own."""
    tree = case.tree
    found = tree.exclusive("alloc_bytes")
    rows = np.flatnonzero(layers & (found.count > 0))
    names = tree.frames["name"].astype(np.int64)[tree.frame_of[rows]]
    key = case.analysis.scopes.module[rows] * (len(tree.tables.strings) + 1) + names
    _, group = np.unique(key, return_inverse=True)
    number = int(group.max(initial=-1)) + 1
    low, high = (np.full(number, value, np.int64) for value in (np.iinfo(np.int64).max, np.iinfo(np.int64).min))
    np.minimum.at(low, group, found.min[rows])
    np.maximum.at(high, group, found.max[rows])
    columns = {name: getattr(found, name).copy() for name in ("count", "sum", "min", "max", "sum_squares")}
    for name in ("count", "sum", "sum_squares"):
        columns[name][rows] = np.bincount(group, columns[name][rows], number)[group]
    columns["min"][rows], columns["max"][rows] = low[group], high[group]
    return replace(found, **columns)


def even_growth(sizes: Measures) -> Mask:
    """Sizes that are 1, 2, 3 ... steps apart: mean and variance are those of an arithmetic progression, which lengths
    by chance do not hit. A few such progressions may follow each other."""
    count = np.maximum(sizes.count, 1).astype(np.float64)
    low, high = sizes.min.astype(np.float64), sizes.max.astype(np.float64)
    span = np.where(sizes.count > 0, high - low, 0.0)
    mean = sizes.sum / count
    variance = sizes.sum_squares / count - mean * mean
    even = (sizes.count >= _TURNS) & (span > 0) & (np.abs(mean - (low + high) / 2) <= 1e-3 * span)
    found = np.zeros(len(count), np.bool_)
    for several in range(1, _GENERATIONS + 1):
        turns = count / several
        expected = span * span * (turns + 1) / np.maximum(12 * (turns - 1), 1)
        found |= (turns >= _TURNS) & (turns % 1 == 0) & (np.abs(variance - expected) <= 2e-3 * expected)
    return even & found
