"""`double_precision`: programs of JAX compute with 64 bits, which somebody may not have meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import calls_of, lines_of, program_facts
from leadline.analysis.rules.words import listed
from leadline.units import duration, percent

_HALF = (0.0, 0.3, 0.5)
"""Of the time: half as many bytes, and twice as many numbers in a vector of the CPU; GPUs gain far more."""


class DoublePrecision(Rule):
    name = "double_precision"
    asks = "Do programs of JAX compute in double precision?"
    options = (
        Option("share", 5, "%", "of the step, where numbers of single precision were turned into doubles"),
        Option("all", 30, "%", "of the step, where all is double: likely intended, so only a note"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        made = []
        for note in program_facts(case, "doubles"):
            function = str(note.get("function"))
            rows = calls_of(case, function)
            rows = rows[case.loop.inside[rows]]
            part = int(note.get("operations", 0)) / max(int(note.get("of", 0)), 1)
            ns = int(case.inclusive_time[rows].sum()) * min(part, 1.0)
            share = case.share(ns)
            mixed = bool(note.get("promoted"))
            if not len(rows) or share < values["share" if mixed else "all"]:
                continue
            lines = lines_of(case, note)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if mixed else Severity.INFO,
                    f"jit({function}) computes in double precision, {percent(share)} of the step"
                    + (": numbers of single precision are turned into doubles" if mixed else ""),
                    case.gain(ns, _HALF, "bound: half of these operations' time; most GPUs gain many times more"),
                    tuple(rows[:20].tolist()),
                    lines or case.lines(rows.tolist()),
                    (
                        f"{note.get('operations')} of its {note.get('of')} operations",
                        f"{duration(case.per_step(ns))} a step",
                        *_brought_in(note, lines=bool(lines)),
                    ),
                    "Give the arguments that are doubles as float32 (NumPy makes float64 by itself: "
                    "x.astype(np.float32)), and leave jax_enable_x64 off where single precision will do.",
                    self.learn_more,
                    share,
                )
            )
        return sorted(made, key=lambda one: -one.weight)[:2]


def _brought_in(note: Mapping[str, Any], *, lines: bool) -> tuple[str, ...]:
    arguments = [str(name) for name in note.get("arguments") or ()]
    if arguments:
        return (f"doubles come in as {'arguments' if len(arguments) > 1 else 'argument'} {listed(arguments)}",)
    return ("doubles are first made on this line",) if lines else ()
