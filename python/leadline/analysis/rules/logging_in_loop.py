"""`logging_in_loop`: every step prints or logs tensors, or watches them in hooks."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.module_hooks import module_hooks
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

LOGS = r"(^|/)torch/_tensor_str\.py$|(^|/)(tensorboardX?|wandb|mlflow|tqdm)/|(^|/)logging/__init__\.py$"


class LoggingInLoop(Rule):
    name = "logging_in_loop"
    asks = "Does every step print or log tensors, or watch them in hooks?"
    on_cpu = True
    options = (
        Option("share", 5, "%", "a change of one line removes it"),
        Option("info", 1, "%", "of operators and the Python that calls them"),
        Option("per_step", 0.5, "1", "every tenth step is what one should do"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        inside = case.in_files(LOGS) & case.loop.inside
        operators = inside & (case.tree.kinds == int(FrameKind.OPERATOR))
        made = []
        for group in case.by_line(inside, case.time):
            python = case.python_ns(case.mask(group.rows))
            share = case.share(group.value + python)
            rows = group.rows[operators[group.rows]]
            often = case.per_step(float(case.calls[rows].max(initial=0)))
            if share < values["info"] or often < values["per_step"]:
                continue
            number = case.per_step(float(case.calls[rows].sum()))
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if share >= values["share"] else Severity.INFO,
                    f"Every step prints or logs tensors, about {percent(share)} of its time",
                    case.and_warm(
                        case.gain_sums(
                            (
                                0.8 * (group.value + python / 3),
                                0.95 * (group.value + python),
                                group.value + case.between_ns,
                            ),
                            _basis(case),
                        )
                    ),
                    tuple(np.sort(rows)[:20].tolist()),
                    case.lines([group.row]),
                    (f"{times(number)} operators of printing, {duration(case.per_step(group.value))} a step",),
                    "Print numbers, not tensors, and every hundredth step; on a GPU every print waits for the device. "
                    "A message that may not be shown takes its values as arguments: log.debug('%s', x).",
                    self.learn_more,
                    share,
                )
            )
        return made[:1] + module_hooks(case, self.name, self.learn_more, values["share"])


def _basis(case: Case) -> str:
    if not case.between_ns:
        return "the operators of printing; formatting in Python comes on top"
    return "the operators of printing, with their part of the Python between operators, at most all of it"
