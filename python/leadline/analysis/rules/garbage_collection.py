"""`garbage_collection`: Python's collector looks through all objects again and again, in the middle of steps."""

from __future__ import annotations

import numpy as np

from leadline.analysis.findings import Gain
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, percent

_ASKED = "collect("
_OF_A_PACKAGE = (
    "A package calls it: look for an option that disables it, or reduce the objects to examine "
    "(gc.freeze() after the imports and the set-up)."
)
_OF_THE_PROGRAM = (
    "Leave gc.collect() out of the loop: reference counting frees tensors at once; call it once an epoch where cycles "
    "hold memory."
)
_BY_ITSELF = (
    "Call gc.freeze() after the set-up, so that permanent objects are not examined again, keep data in arrays "
    "or tensors instead of millions of objects, or disable it and call gc.collect() every few hundred steps."
)


class GarbageCollection(Rule):
    name = "garbage_collection"
    asks = "Does Python's garbage collector stop the steps?"
    on_cpu = True
    options = (
        Option("share", 5, "%", "of the step in full collections; a few milliseconds now and then are normal"),
        Option("times", 3, "1", "full collections; one or two belong to the set-up"),
        Option("info", 2, "%", "less than that is no reason to change anything"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        if not case.named(FrameKind.PHASE, "garbage collection").any():
            raise CannotTell("pauses of the garbage collector were not recorded")
        calls = case.tree.exclusive("call_time")
        here = case.pauses
        groups = case.by_line(here, calls.sum)
        ns, number = (int(column[here].sum()) for column in (calls.sum, calls.count))
        share = case.share(ns)
        if share < values["info"] or number < values["times"] or not groups:
            return []
        lines = case.lines([group.row for group in groups])
        by = case.made_by(groups[0].row)
        asked = _ASKED in (lines[0].text if lines else "") or bool(by and _ASKED in case.code_text(groups[0].row))
        longest = int(calls.max[here].max())
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"Python's garbage collector takes {percent(share * case.contention.python_ran)} of the step"
                + (f", since {'a package' if by else 'the program'} calls it" if asked else ""),
                _gain(case, ns * case.contention.python_ran, asked),
                tuple(np.flatnonzero(here)[:20].tolist()),
                lines,
                (
                    f"{number:,} full collections in {case.loop.steps:,} steps, {duration(ns / max(number, 1))} "
                    f"each, the longest {duration(longest)}",
                    *((f"called in {by}" if asked else f"most of them in {by}",) if by else ()),
                ),
                _OF_A_PACKAGE if asked and by else _OF_THE_PROGRAM if asked else _BY_ITSELF,
                self.learn_more,
                share,
            )
        ]


def _gain(case: Case, ns: float, asked: bool) -> Gain:
    low, expected = (0.7, 0.9) if asked else (0.3, 0.8)
    return case.and_warm(case.gain_sums((low * ns, expected * ns, ns), "the pauses themselves, measured"))
