"""`thread_oversubscription`: more workers than cores (DeepContext, section 6.4)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.processes import cpus, loading_at_once, workers
from leadline.schema import FrameKind
from leadline.units import duration


class ThreadOversubscription(Rule):
    name = "thread_oversubscription"
    asks = "Do more processes prepare batches than there are cores?"
    on_cpu = True
    options = (Option("ratio", 1, "1", "workers per core; beyond one they wait for each other and for training"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        cores, number = cpus(case), workers(case)
        if not cores:
            raise CannotTell("the file does not say how many cores there are")
        loading = case.named(FrameKind.PHASE, "data loading") & case.loop.inside
        if not loading.any():
            raise CannotTell("no DataLoader was seen in the loop")
        # Training wants a core of its own. Workers of another loader, or whose batches are made long before, take none.
        if number <= values["ratio"] * cores or loading_at_once(case) + 1 <= values["ratio"] * cores:
            return []
        row = int(np.flatnonzero(loading)[np.argmax(case.inclusive_time[np.flatnonzero(loading)])])
        ns = int(case.inclusive_time[case.first_of(loading)].sum())
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"{number} workers load data on {cores} cores",
                case.gain(
                    ns, (0, 0.3, 0.9), "bound: the wait for batches; starting fewer workers saves more at the beginning"
                ),
                (row,),
                case.lines([row]),
                (f"{duration(case.per_step(ns))} a step waiting for batches",),
                f"Use num_workers={max(1, cores - 1)}: one core is left for training.",
                self.learn_more,
                max(case.share(ns), 0.05),
            )
        ]
