"""`scheduler_gap`: the engine does something else between two steps while requests wait."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import duration, number, percent


class SchedulerGap(Rule):
    name = "scheduler_gap"
    asks = "Does the engine pause between steps while requests wait?"
    options = (
        Option("share", 15, "%", "of the time in steps and between them; accepting requests costs a few percent"),
        Option("steps", 50, "1", "gaps; fewer may be one pause of the machine"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        gap = engine.gap
        whole = engine.steps_ns + gap.total
        share = gap.total / max(whole, 1)
        if gap.count < values["steps"] or share < values["share"]:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"The engine pauses between steps for {percent(share)} of its working time",
                case.no_gain("upper bound: the pauses themselves"),
                (),
                (),
                (
                    f"{number(gap.count)} pauses, {duration(gap.quantile(0.5))} (p50), {duration(gap.quantile(0.99))} "
                    f"(p99), {duration(gap.most)} at most",
                    f"a step takes {duration(engine.steps_ns / max(engine.number_of_steps, 1))}",
                ),
                "Take work off the engine's thread: tokenise and detokenise in the server's process, schedule the next "
                "step while this one runs (vLLM: async_scheduling), log less.",
                self.learn_more,
                share,
            )
        ]
