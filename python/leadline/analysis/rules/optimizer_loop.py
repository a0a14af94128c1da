"""`optimizer_loop`: the optimizer goes through the parameters one by one."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.measurable import PROVE
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.gradients_in_vain import mostly_zero_part
from leadline.analysis.rules.optimizer_gain import Update, update_gain
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_IN_ONE_PIECE = ("LBFGS", "SparseAdam")
"""Their operators are their method, and there is no other form of them."""
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
_OF_TORCH = (*_FUSED, "Adadelta", "Adafactor", "Adamax", "ASGD", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop")
_SPARSE = r"^aten::(?:_?coalesced?_?|_?indices|_?values|_?sparse_.*|sparse_mask)$"
"""An optimizer calls these for sparse gradients, which its fused form refuses."""
_UNNAMED = "the optimizer"
_MOST = 0.5
"""Of the parameters: where so many have gradients that are mostly zero, updating them in one call is not the remedy."""
_LONG_NS = 200_000
"""What takes longer each time is work that no other way of calling it spares."""


class OptimizerLoop(Rule):
    name = "optimizer_loop"
    asks = "Does the optimizer update parameters one by one?"
    on_cpu = True
    options = (
        Option(
            "share", 30, "%", "healthy models of a few layers spend 10 to 25 % of a CPU step in the default optimizer"
        ),
        Option("info", 15, "%", "below that a fused optimizer gains a few percent"),
        Option("operators", 40, "1", "a fused or foreach optimizer runs a handful of operators"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        # compiled code has the optimizer in one piece, whatever it is made of
        compiled = case.below(case.tree.kinds == int(FrameKind.OPERATOR))
        phase = case.named(FrameKind.PHASE, "optimizer") & case.loop.inside & ~compiled
        if not phase.any():
            raise CannotTell("no optimizer was seen")
        if (case.matching(FrameKind.OPERATOR, r"^aten::_fused_") & case.below(phase)).any():
            return []
        outer = case.first_of(phase)
        ns = int(case.inclusive_time[outer].sum()) - self._closures(case, phase)
        inside = case.below(phase) & (case.tree.kinds == int(FrameKind.OPERATOR))
        each = case.per_step(float(case.calls[inside].sum()))
        share = case.share(ns)
        if share < values["info"] or each < values["operators"]:
            return []
        row = int(np.flatnonzero(outer)[np.argmax(case.inclusive_time[outer])])
        kind = str(case.tree.node(row).detail.get("optimizer", _UNNAMED))
        if kind in _IN_ONE_PIECE or (case.matching(FrameKind.OPERATOR, _SPARSE) & case.below(phase)).any():
            return []
        if mostly_zero_part(case) >= _MOST:
            return []  # `unused_gradients` says what spares this work; a fused form refuses sparse gradients
        ours = kind in _OF_TORCH or kind == _UNNAMED
        together = (case.matching(FrameKind.OPERATOR, r"^aten::_foreach_") & case.below(phase)).any()
        if not ours and (together or self._is_work(case, inside)):
            return []
        mine = case.below(phase) & ~self._in_closures(case, phase)
        update = Update(mine, inside & mine, ns, kind, kind in _FUSED)
        fix = "fused=True" if kind in _FUSED else "foreach=True where it has that option"
        remedy = (
            f"Construct it with {fix}: one operator then updates all parameters."
            if ours
            else "Update all parameters together with torch._foreach_ functions, or take an optimizer of torch.optim."
        )
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"{kind} runs {times(each)} operators a step, {percent(case.share(case.ran_ns(mine)))} of its time "
                "with calling them",
                update_gain(case, update),
                tuple(np.flatnonzero(outer)[:20].tolist()),
                case.lines([row]),
                (f"{duration(case.per_step(ns))} of {duration(case.loop.step_ns)} a step",),
                remedy,
                self.learn_more,
                share,
                "fused_optimizer" if ours else "",
                measured_by="" if ours else PROVE,
            )
        ]

    def _is_work(self, case: Case, inside: Mask) -> bool:
        """Whether most of the time in these operators is in calls that take long."""
        own, calls = np.where(inside, case.loop.time, 0), case.calls
        long = own > _LONG_NS * np.maximum(calls, 1)
        return bool(own[long].sum() >= 0.5 * own.sum())

    def _closures(self, case: Case, phase: Mask) -> int:
        """Time of closures, which are the model's work below the optimizer's call."""
        closure = case.first_of(self._in_closures(case, phase) & case.named(FrameKind.PHASE, "closure"))
        return int(case.inclusive_time[closure].sum())

    def _in_closures(self, case: Case, phase: Mask) -> Mask:
        found: Mask = case.below(case.named(FrameKind.PHASE, "closure") & case.below(phase)) & case.loop.inside
        return found
