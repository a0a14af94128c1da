"""`deterministic_backward`: the gradient of indexing is added up in a fixed order (DeepContext, section 6.1)."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, percent

_ON_CPU = (0, 0.2, 0.5)
"""Of the backward pass: 5 to 45 % on one thread, for 3,000 to 20,000 rows of 16 to 512 numbers (torch 2.13)."""


class DeterministicBackward(Rule):
    name = "deterministic_backward"
    asks = "Does the backward pass of indexing take a noticeable part of the step?"
    options = (Option("share", 5, "%", "less of the step is not worth another way to select rows"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        back = case.matching(FrameKind.OPERATOR, r"^(Index|Take)Backward\d*$") & case.loop.inside
        if not case.in_phase("backward").any():
            raise CannotTell("no backward pass was measured")
        made = []
        for group in case.by_line(case.first_of(back), case.cost_with_all_below):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if case.has_device else Severity.INFO,
                    f"The gradient of indexing takes {percent(share)} of {case.cost_name}",
                    case.gain_of(
                        group.rows,
                        group.value,
                        (0, 0.6, 1) if case.has_device else _ON_CPU,
                        "bound: the backward pass of this index",
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step in {case.name(group.row)}, which adds "
                        "rows that "
                        "are chosen twice in a fixed order",
                    ),
                    "Look rows up with torch.index_select or torch.nn.functional.embedding, whose gradients are added "
                    "without an order."
                    if case.has_device
                    else "Look rows up with torch.index_select, whose gradient is cheaper for many rows on a CPU.",
                    self.learn_more,
                    share,
                )
            )
        return made
