"""`sampler_synchronisation`: each step waits for the device in the sampler, so the next one is prepared too late."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import duration, number, percent


class SamplerSynchronisation(Rule):
    name = "sampler_synchronisation"
    asks = "Do engine steps wait for the device in the sampler?"
    options = (Option("share", 10, "%", "of the time in engine steps"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine, sync = engine_of(case), case.tree.exclusive("sync_time")
        sampling = case.in_phase("sampling")
        waits = np.where(sampling, np.maximum(sync.sum, 0), 0)
        if not sync.sum.any():
            raise CannotTell("no wait for a device was measured")
        whole = int(waits.sum())
        share = whole / max(engine.steps_ns, 1)
        if share < values["share"]:
            return []
        rows = case.by_line(sampling, waits)
        count = int(sync.count[sampling].sum())
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Engine steps wait {percent(share)} of their time for the device in the sampler",
                case.no_gain("the device still has to compute what is waited for"),
                tuple(rows[0].rows[:20].tolist()) if rows else (),
                case.lines([one.row for one in rows[:3]]),
                (
                    f"{number(count)} waits of {duration(whole / max(count, 1))} in "
                    f"{number(engine.number_of_steps)} steps",
                ),
                "Schedule the next step while this one runs (vLLM: async_scheduling), and leave out what makes the "
                "sampler read values on the host: penalties, bad words, processors of logits in Python.",
                self.learn_more,
                min(share, 1.0),
            )
        ]
