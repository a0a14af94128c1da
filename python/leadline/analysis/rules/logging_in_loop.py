"""`logging_in_loop`: every step prints or logs tensors, or watches them in hooks."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask, Rows
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.module_hooks import module_hooks
from leadline.analysis.rules.what_is_logged import what_is_logged
from leadline.analysis.scopes import in_called
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_LOGS = r"(^|/)torch/_tensor_str\.py$|(^|/)(tensorboardX?|wandb|mlflow|tqdm)/|(^|/)logging/__init__\.py$"

_MUCH = 0.02
"""Of the step."""


def logging_calls(case: Case) -> Mask:
    """Nodes of what the program calls to print, log or show progress."""
    return in_called(case.tree, case.analysis.scopes, _LOGS)


class LoggingInLoop(Rule):
    name = "logging_in_loop"
    asks = "Does every step print or log tensors, or watch them in hooks?"
    on_cpu = True
    options = (
        Option("share", 5, "%", "a change of one line removes it"),
        Option("info", 1, "%", "of operators and the Python that calls them"),
        Option("per_step", 0.5, "1", "printing every tenth step is fine"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        logs = logging_calls(case)
        inside = logs & case.loop.inside
        operators = inside & (case.tree.kinds == int(FrameKind.OPERATOR))
        groups = [
            group
            for group in case.by_line(inside, case.time)
            if case.per_step(float(case.calls[group.rows[operators[group.rows]]].max(initial=0))) >= values["per_step"]
        ]
        if not groups:
            return module_hooks(case, self.name, self.learn_more, values["share"])
        rows = np.concatenate([group.rows for group in groups])
        called = np.sort(rows[operators[rows]])
        ns = sum(group.value for group in groups)
        python, beside = _python(case, rows, inside), _beside(case, logs)
        share = case.share(ns + python)
        if share < values["info"]:
            return module_hooks(case, self.name, self.learn_more, values["share"])
        number = case.per_step(float(case.calls[called].sum()))
        logged = what_is_logged(case, rows)
        found = Finding(
            self.name,
            Severity.WARNING if share >= values["share"] else Severity.INFO,
            f"Every step {logged.does}, about {percent(share)} of its time",
            case.and_warm(
                case.gain_sums(
                    (
                        0.8 * (ns + python / 3),
                        0.95 * (ns + python) + 0.5 * beside,
                        ns + max(case.between_ns, python) + beside,
                    ),
                    _basis(case),
                )
            ),
            tuple(called[:20].tolist()),
            case.lines([group.row for group in groups[:2]]),
            (
                f"{times(number)} operators of printing, {duration(case.per_step(ns))} a step",
                *(
                    (f"{duration(case.per_step(beside))} a step more on other threads, which write it",)
                    if beside
                    else ()
                ),
            ),
            logged.remedy,
            self.learn_more,
            share,
        )
        return [found, *module_hooks(case, self.name, self.learn_more, values["share"])]


def _python(case: Case, rows: Rows, inside: Mask) -> float:
    """The Python that calls these operators: by samples, or as much of what is between operators as they are of all."""
    sampled = float(case.samples[inside & (case.analysis.scopes.inner < 0)].sum())
    return max(sampled, case.python_ns(case.mask(rows)))


def _beside(case: Case, logs: Mask) -> float:
    """CPU time of other threads of the process that write what is logged, which take its interpreter and cores."""
    scopes = case.analysis.scopes
    anchor = case.loop.anchors[0]
    other = logs & (scopes.process == scopes.process[anchor]) & (scopes.thread != scopes.thread[anchor])
    ns = float(case.tree.exclusive(METRIC).sum[other].sum())
    return ns if case.share(ns) >= _MUCH else 0.0


def _basis(case: Case) -> str:
    if not case.between_ns:
        return "the operators of printing; formatting in Python comes on top"
    return "the operators of printing, with their part of the Python between operators, at most all of it"
