"""`weights_again`: weights are computed from the same parameters again and again within one step.

A parametrisation (weight_norm, spectral_norm, orthogonal) takes no input but parameters, which change once a step. What
it computes on its second call of a step, it has computed before.
"""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.made_weights import made_weights
from leadline.analysis.rules.words import listed
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_PARAMETRISED = re.compile(r"\.parametrizations\.\w+$")
_OLD_HOOKS = r"torch/nn/utils/(weight_norm|spectral_norm)\.py$"


class WeightsAgain(Rule):
    name = "weights_again"
    asks = "Are weights computed again from parameters that have not changed since?"
    options = (
        Option("share", 5, "%", "of the step; a norm of small weights costs little"),
        Option("calls", 1.5, "1", "a step of one module's parametrisation; once a step is what it takes"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        built = made_weights(case, self.name, self.learn_more, values, ~parametrised(case))
        try:
            return self._parametrised(case, values) + built
        except CannotTell:
            if not built:
                raise
            return built

    def _parametrised(self, case: Case, values: Values) -> list[Finding]:
        made = parametrised(case)
        made &= case.loop.inside
        if not made.any():
            raise CannotTell("no parametrised module was called")
        outer = case.first_of(made)
        rows = np.flatnonzero(outer)
        often = np.array([_calls(case, int(row)) for row in rows.tolist()])
        again = rows[often >= values["calls"]]
        if not len(again):
            return []
        ns = int(case.inclusive_time[again].sum())
        share = case.share(ns)
        if share < values["share"]:
            return []
        each = float(often.max())
        spared = 1 - 1 / each
        order = again[np.argsort(-case.inclusive_time[again], kind="stable")]
        names = sorted({case.name(int(row)).split(".parametrizations")[0] for row in order[:20].tolist()})
        around = case.inner_loop(int(order[0]))
        head = (case.line_at(around[0], around[1].first),) if around is not None else ()
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Weights are computed again from the same parameters {times(each)} times a step, "
                f"{percent(share)} of it",
                case.gain_of(again, ns, (0.6 * spared, 0.9 * spared, 1), "the calls but one of each module"),
                tuple(order[:20].tolist()),
                (*case.lines(order.tolist(), 2), *head),
                (
                    f"of {listed(names)}",
                    f"{duration(case.per_step(ns))} a step, their backward passes included",
                    "parameters change only in the optimizer's step",
                ),
                "Compute them once for all calls: put the loop below `with torch.nn.utils.parametrize.cached():`.",
                self.learn_more,
                share,
            )
        ]


def parametrised(case: Case) -> Mask:
    """Nodes in which weights are computed from parameters."""
    frames = case.tree.frames
    found = np.zeros(len(frames["kind"]), np.bool_)
    for frame in np.flatnonzero(frames["kind"] == int(FrameKind.MODULE)).tolist():
        found[frame] = bool(_PARAMETRISED.search(case.tree.text("name", frame)))
    return case.below(found[case.tree.frame_of]) | case.in_files(_OLD_HOOKS)


def _calls(case: Case, row: int) -> float:
    """How often a module is called a step: as most of the operators that it calls itself are. Some may be called twice
    each time, others in its first call only."""
    below = case.below_row(row)
    counts = case.calls[below[(case.outer_operators & ~case.in_phase("backward"))[below]]]
    numbers, often = np.unique(counts[counts > 0], return_counts=True)
    return case.per_step(float(numbers[np.argmax(often)])) if len(numbers) else 0.0
