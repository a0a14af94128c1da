"""`unused_gradients`: gradients are computed that nothing uses: of frozen parts and helper models, those that are
thrown away before their optimizer steps, and the zeros of a large vocabulary."""

from __future__ import annotations

import numpy as np

from leadline.analysis.gains import RECORDING
from leadline.analysis.rules.base import CannotTell, Case, Finding, Gain, Option, Rule, Severity, Values
from leadline.analysis.rules.gradients_in_vain import ZEROS, discarded, mostly_zero
from leadline.analysis.rules.habits import habits, modules_named
from leadline.analysis.rules.words import listed
from leadline.schema import FrameKind
from leadline.units import abbreviated, percent, size


class UnusedGradients(Rule):
    name = "unused_gradients"
    asks = "Are gradients computed that no optimizer uses?"
    options = (
        Option("share", 5, "%", "of the step in backward passes of such modules; less is not worth a change"),
        Option("info", 1, "%", "a few unused parameters are normal"),
        Option("zeros", ZEROS, "1", "rows of an embedding's gradient for each that can differ from zero"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        found = mostly_zero(case, self.name, self.learn_more, values)
        found += discarded(case, self.name, self.learn_more, values)
        try:
            return self._never_used(case, values) + found
        except CannotTell:
            if not found:
                raise
            return found

    def _never_used(self, case: Case, values: Values) -> list[Finding]:
        told = habits(case, "unused_gradients")
        if not told:
            raise CannotTell("parameters and optimizers were not compared (ten steps of a torch optimizer are needed)")
        unused = max(told, key=lambda one: int(one.get("parameters", 0)))
        if not unused.get("modules"):
            return []
        modules = modules_named(case, unused["modules"])
        backward = case.in_phase("backward") & case.below(modules)
        ns = int(case.cost_with_all_below[case.first_of(backward)].sum())
        share = ns / max(case.cost_of_all, 1)
        if share < values["info"]:
            return []
        forward = int(case.cost_with_all_below[case.first_of(modules)].sum()) - ns
        rows = np.flatnonzero(case.first_of(modules))
        rows = rows[np.argsort(-case.cost_with_all_below[rows], kind="stable")]
        names = [str(one["module"] or one["class"]) for one in unused["modules"]]
        many = int(unused["parameters"])
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"Gradients of {abbreviated(many)} parameters are computed and never used, {percent(share)} of "
                f"{case.cost_name} goes to their modules' backward passes",
                _gain(case, ns, forward, many / max(int(unused["of_parameters"]), 1)),
                tuple(rows[:20].tolist()),
                case.lines(rows.tolist()),
                (
                    f"{percent(many / max(int(unused['of_parameters']), 1))} of all parameters with gradients, "
                    f"{size(int(unused['bytes']))} of gradients kept",
                    f"no optimizer has the parameters of {listed(names)}",
                ),
                "Freeze them before training (module.requires_grad_(False)), and run what comes first in the model "
                "below torch.no_grad().",
                self.learn_more,
                share,
            )
        ]


def _gain(case: Case, ns: int, forward: int, part: float) -> Gain:
    """The backward passes, at most with what adds their gradients up, an even share of the time between operators, and
    what recording the forward passes costs; where something before them in the model is trained, what it needs of them
    stays."""
    adding = case.first_of(case.matching(FrameKind.OPERATOR, "AccumulateGrad") & case.loop.inside)
    added = part * int(case.cost_with_all_below[adding].sum())
    beside = case.between_ns * min(1.0, (ns + added) / max(case.loop.work_ns * case.loop.steps, 1.0))
    _, recorded, most = (fraction * forward for fraction in RECORDING)
    return case.gain_sums(
        (0.3 * ns, 0.7 * (ns + added) + recorded, ns + added + beside + most),
        "bound: the backward passes of these modules, adding their gradients up, recording their forward passes, and "
        "an even share of the time between operators",
    )
