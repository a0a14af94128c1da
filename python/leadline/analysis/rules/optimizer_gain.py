"""Part of `optimizer_loop`: what an optimizer gains that updates all parameters in one call.

It has two parts. Calling an operator, with the Python around it, takes 3 µs of a core that is free; one call for all
parameters spares most of that. The rest is arithmetic on memory: a fused Adam reads each parameter once where the loop
goes over it 13 times, a fused SGD without momentum reads as much as before, and `foreach=True` runs the same operators
on a CPU. `_PASSES` is measured by bench/fused_optimizer.py.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Gain
from leadline.analysis.waiting import in_line_ns
from leadline.schema import FrameKind

_CALL_NS = 3_000
"""Calling an operator from Python, with its part of the optimizer's own Python."""
_CALLS = (0.6, 0.85, 0.9)
"""Of calling, what one call for all parameters spares: low, expected, high."""
_CALLS_OF_FOREACH = (0.3, 0.5, 0.6)
"""The same of the form that loops in C++ on a CPU."""
_PASSES = {
    "Adam": (0.5, 0.7, 0.85),
    "AdamW": (0.5, 0.7, 0.85),
    "Adagrad": (0.4, 0.65, 0.8),
    "SGD": (0.1, 0.35, 0.5),
}
"""Of the operators' own time, what the fused form spares; of SGD with momentum."""
_PLAIN_SGD = (0.0, 0.03, 0.2)
_CROWDED = 0.1
"""Of the optimizer's time in line for a core: with more, its operators take longer than they do alone."""


@dataclass(frozen=True)
class Update:
    """`below`, `inside`: nodes of its phases, and of operators among them, both without closures; `ns`: of all steps;
    `kind`: its name; `fused`: whether it has that form."""

    below: Mask
    inside: Mask
    ns: int
    kind: str
    fused: bool


def update_gain(case: Case, update: Update) -> Gain:
    """The gain of a step. Where others had the cores, the waits for them are nobody's to save here, and the quickest
    call of each operator tells what it takes alone."""
    in_line = min(in_line_ns(case.tree, update.below & case.on_own_thread), float(update.ns))
    free = update.ns - in_line
    if in_line < _CROWDED * update.ns:
        return case.gain_sums(_spared(case, update, float(update.ns)), "bound: the optimizer's part of the step")
    alone = min(_quickest(case, update), free)
    low, expected, _ = _spared(case, update, alone)
    high = _spared(case, update, free)[2]
    basis = "bound: the optimizer's part of the step without its waits for a core; expected: by its quickest calls"
    return case.gain_sums((low, expected, max(high, expected)), basis)


def _spared(case: Case, update: Update, ns: float) -> tuple[float, float, float]:
    """Of an update that takes `ns`: low, expected, high."""
    on_device = bool(case.tree.exclusive("gpu_time").sum[update.below].any())
    number = float(case.calls[update.inside].sum())
    calling = ns if on_device else min(ns, _CALL_NS * number)  # a device computes, the CPU only calls
    passes = ns - calling
    if not update.fused:
        low, expected, high = (part * calling for part in (_CALLS if on_device else _CALLS_OF_FOREACH))
        return low, expected, high
    of_passes = _PASSES.get(update.kind, _PLAIN_SGD)
    if update.kind == "SGD" and not (case.named(FrameKind.OPERATOR, "aten::mul_") & update.inside).any():
        of_passes = _PLAIN_SGD
    low, expected, high = (a * calling + b * passes for a, b in zip(_CALLS, of_passes, strict=True))
    return low, expected, high


def _quickest(case: Case, update: Update) -> float:
    """The update where every call takes as long as the quickest of its kind and shapes."""
    taken = case.tree.exclusive("call_time")
    outer = case.first_of(update.inside) & (taken.count > 0)
    whole = max(float(taken.sum[outer].sum()), 1.0)
    least = float((np.where(outer, taken.min, 0) * np.where(outer, taken.count, 0)).sum())
    return update.ns * min(least / whole, 1.0)
