"""`first_steps`: first calls are so slow that means over all steps mislead."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.units import duration, percent


class FirstSteps(Rule):
    name = "first_steps"
    asks = "Do first calls distort means over all steps?"
    options = (
        Option("share", 50, "%", "of the time in the loop; a little warm-up is normal"),
        Option("steps", 50, "1", "means over fewer steps are rarely quoted"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        loop = case.loop
        raw = np.where(loop.inside & ~case.in_phase("compile"), case.tree.exclusive("time").sum, 0)
        extra = np.maximum(raw - loop.time, 0)
        total, ns = int(raw.sum()), int(extra.sum())
        share = ns / max(total, 1)
        groups = case.by_line(extra > 0, extra)
        whole = total if not loop.measured_by else max(total, ns + case.total_ns)
        share = ns / max(whole, 1)
        if share < values["share"] or loop.steps < values["steps"] or not groups:
            return []
        return [
            Finding(
                self.name,
                Severity.INFO,
                f"First calls take {percent(share)} of all time in the loop",
                case.no_gain("the steps are not slow; a mean that includes first calls is too large"),
                tuple(group.row for group in groups[:5]),
                case.lines([group.row for group in groups]),
                (f"{duration(ns)} more than the same calls took later",),
                "Leave the first steps out of means: warm up, then measure.",
                self.learn_more,
                share / 10,
            )
        ]
