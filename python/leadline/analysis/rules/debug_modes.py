"""`debug_modes`: an aid for finding mistakes is on in every step: autograd's anomaly detection."""

from __future__ import annotations

import numpy as np

from leadline.analysis.calls_in_source import lines_that_call, unique_lines
from leadline.analysis.columns import Mask, above
from leadline.analysis.rules.backward_lines import backward_lines
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_ENGINE = r"^autograd::engine::evaluate_function: "
_CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::item", "aten::is_nonzero")


class DebugModes(Rule):
    name = "debug_modes"
    asks = "Is a debugging aid of the framework on in every step?"
    options = (
        Option("checked", 50, "%", "of backward operators that are searched for NaN; only anomaly mode does that"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = case.matching(FrameKind.OPERATOR, _ENGINE) & case.loop.inside
        if not engine.any():
            raise CannotTell("no backward pass was seen")
        checks = checked_for_nan(case)
        counted = case.operators("aten::isnan") & checks
        graph = engine & ~case.matching(FrameKind.OPERATOR, "AccumulateGrad")
        number = int(case.calls[counted].sum())
        if number < values["checked"] * max(int(case.calls[graph].sum()), 1):
            return []
        ns = int(case.inclusive_time[checks].sum())
        share = case.share(ns)
        asked = backward_lines(case)
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Autograd's anomaly detection is on: {times(case.per_step(number))} checks for NaN a step, "
                f"{percent(share)} of its time",
                case.gain_sums(
                    (ns, 1.5 * ns + 0.3 * case.between_ns, 2 * ns + 0.9 * case.between_ns),
                    "the checks, and at most the Python that records the stack of every operator",
                ),
                tuple(np.flatnonzero(checks)[:20].tolist()),
                unique_lines(
                    [*_switched_on(case), *case.lines([*asked[:1].tolist(), *np.flatnonzero(checks)[:2].tolist()])]
                ),
                (f"{duration(case.per_step(ns))} a step to check each backward operator for NaN",),
                "Remove torch.autograd.set_detect_anomaly(True) (detect_anomaly=True in a trainer), or put it around "
                "the step that fails; on a GPU each check also waits for the device.",
                self.learn_more,
                max(share, 0.1),
            )
        ]


def _switched_on(case: Case) -> list[Line]:
    return lines_that_call(case, ("set_detect_anomaly", "detect_anomaly"), keyword="detect_anomaly")


def checked_for_nan(case: Case) -> Mask:
    """What autograd's engine itself calls behind a backward operator, which is never the program's doing."""
    engine = case.matching(FrameKind.OPERATOR, _ENGINE)
    parent = above(case.tree.shape, np.arange(len(case.tree)))
    checks: Mask = case.operators(*_CHECKS) & (parent >= 0) & engine[np.maximum(parent, 0)]
    return checks
