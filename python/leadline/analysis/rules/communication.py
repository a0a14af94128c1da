"""`communication`: the step waits for other ranks."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.words import duration, percent, times


class Communication(Rule):
    name = "communication"
    asks = "Does communication between ranks take a large part of the step?"
    options = (Option("share", 20, "%", "of the step; ten are usual for data-parallel training"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        talk = collectives(case) & case.loop.inside
        if not talk.any():
            raise CannotTell("no communication between ranks was measured")
        outer = case.first_of(talk)
        made = []
        for group in case.by_line(outer, case.cost_with_all_below):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            calls = case.per_step(float(case.calls[group.rows].sum()))
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Communication takes {percent(share)} of {case.cost_name}",
                    case.gain(group.value, (0, 0.4, 1), "bound: all of it hidden, as if nothing were yet"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"{times(calls)} collectives, {duration(case.per_step(group.value))} a step",),
                    "Overlap it with the backward pass (DistributedDataParallel does; look at bucket_cap_mb), exchange "
                    "less often (no_sync while accumulating) or in lower precision.",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]
