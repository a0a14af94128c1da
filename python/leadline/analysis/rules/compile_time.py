"""`compile_time`: compiling takes a large part of the run."""

from __future__ import annotations

import numpy as np

from leadline.analysis.compilers import caches
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, percent


class CompileTime(Rule):
    name = "compile_time"
    asks = "Does compiling take a large part of what the program did?"
    options = (Option("share", 30, "%", "of compilation and steps together; a longer run makes it smaller"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        phase = case.named(FrameKind.PHASE, "compile")
        if not phase.any():
            raise CannotTell("nothing was compiled")
        outer = case.first_of(phase)
        whole = case.tree.inclusive("time").sum
        ns = int(whole[outer].sum())
        share = ns / max(ns + case.total_ns, 1)
        if share < values["share"]:
            return []
        kept = caches(case.profile.meta)
        of = "steps" if case.loop.measured_by else "operators in steps, whose wall time is not known"
        row = int(np.flatnonzero(outer)[np.argmax(whole[outer])])
        return [
            Finding(
                self.name,
                Severity.INFO,
                f"Compiling takes {percent(share)} of what was measured",
                case.no_gain("compiled code is kept between runs only in caches"),
                tuple(np.flatnonzero(outer)[:20].tolist()),
                case.lines([row]),
                (f"{duration(ns)} of compilation, {duration(case.total_ns)} of {of}",),
                "Measure more steps before judging; compile only the part that repeats (one block of the model)"
                + (f" and keep {kept} between runs." if kept else "."),
                self.learn_more,
                share / 4,
            )
        ]
