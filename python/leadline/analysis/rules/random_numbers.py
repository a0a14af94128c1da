"""`random_numbers`: drawing random numbers takes a large part of the step on the CPU.

Whether it is large is decided by its share of all operators and waits; what is said is the time on a core, which the
account of a step says as well.
"""

from __future__ import annotations

import numpy as np

from leadline.analysis.measurable import PROVE
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.workclass import classes_of_nodes
from leadline.units import duration, percent
from leadline.work.operators import CLASSES

_ATTENTION = "aten::scaled_dot_product_attention"


class RandomNumbers(Rule):
    name = "random_numbers"
    asks = "Do random numbers take a large part of the step?"
    options = (Option("share", 10, "%", "of the step; dropout on a few small layers takes less"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        if case.has_device:
            raise CannotTell("the work is on a device, where random numbers are cheap")
        drawn = (classes_of_nodes(case.tree) == CLASSES.index("random")) & (case.time > 0) & case.loop.inside
        drawn &= ~case.in_phase("data loading") & case.on_own_thread
        ns = int(case.time[drawn].sum())
        if case.share(ns) < values["share"]:
            return []
        ran_ns = case.ran_ns(drawn, calling=False)
        share = case.share(ran_ns)
        attention = case.below(case.operators(_ATTENTION)) & drawn
        dropout = case.below(case.operators("aten::dropout", "aten::native_dropout", "aten::feature_dropout")) & drawn
        of_attention = int(case.time[attention].sum())
        of_dropout = of_attention + int(case.time[dropout & ~attention].sum())
        rows = np.flatnonzero(drawn)
        order = rows[np.argsort(-case.time[rows], kind="stable")]
        evidence = [f"{duration(case.per_step(ran_ns))} a step, computed by one thread, on any number of cores"]
        if of_attention:
            evidence.append(
                f"{percent(of_attention / ns)} of it inside scaled_dot_product_attention: with dropout_p > 0 it takes "
                "its unfused path on a CPU"
            )
        if of_dropout * 2 >= ns:
            less = "in attention first (its fused path on the CPU has none)" if of_attention else ""
            less = less or "or drop fewer and smaller tensors"
            remedy = f"Use dropout=0 where the task allows it, {less}, which changes the training."
        else:
            remedy = "Draw the numbers once for many steps, or draw fewer; sums of cheap ones are enough for noise."
        unfused = case.ran_ns(case.below(case.operators(_ATTENTION)) & ~drawn) if of_attention else 0.0
        return [
            Finding(
                self.name,
                Severity.WARNING if case.share(ns) >= 0.3 else Severity.INFO,
                f"Random numbers take {percent(share)} of the step",
                case.gain_sums((0.8 * ran_ns, ran_ns, ran_ns + 0.5 * unfused), "the operators that draw them"),
                tuple(order[:20].tolist()),
                case.lines(order.tolist()),
                tuple(evidence),
                remedy,
                self.learn_more,
                share,
                changes_result=of_dropout * 2 >= ns,
                measured_by="" if of_dropout * 2 >= ns else PROVE,
            )
        ]
