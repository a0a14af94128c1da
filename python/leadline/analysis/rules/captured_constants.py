"""`captured_constants`: a compiled program of JAX holds large arrays as constants, which it closed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import compiling, lines_of, program_facts, run_ns
from leadline.analysis.rules.words import listed
from leadline.units import duration, percent, size


class CapturedConstants(Rule):
    name = "captured_constants"
    asks = "Do compiled programs of JAX hold large arrays as constants?"
    options = (
        Option("least", 4e6, "bytes", "masks and tables of positions are smaller, and harmless"),
        Option(
            "warning", 64e6, "bytes", "above this, compiling takes seconds longer, and memory holds the arrays twice"
        ),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        by_function: dict[str, list[Mapping[str, Any]]] = {}
        for note in program_facts(case, "constants"):
            by_function.setdefault(str(note.get("function")), []).append(note)
        made = []
        for function, notes in by_function.items():
            notes.sort(key=lambda note: -int(note.get("bytes", 0)))
            held = sum(int(note.get("bytes", 0)) for note in notes)
            if held < values["least"]:
                continue
            rows, ns = compiling(case, function)
            shapes = listed([f"{note.get('shape')} ({size(int(note.get('bytes', 0)))})" for note in notes])
            evidence = [shapes]
            if ns:
                evidence.append(f"compiling {function} took {duration(ns)}, {percent(ns / run_ns(case))} of the run")
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if held >= values["warning"] else Severity.INFO,
                    f"jit({function}) holds {size(held)} of arrays as constants",
                    case.no_gain("it saves memory and compilation: the compiler copies constants"),
                    tuple(rows[:20].tolist()),
                    tuple(line for note in notes for line in lines_of(case, note))[:3],
                    tuple(evidence),
                    "Pass them to the function as arguments: jax.jit copies an array from outside of the function "
                    "into each program that it compiles.",
                    self.learn_more,
                    min(1.0, ns / max(run_ns(case), 1)) / 4,
                )
            )
        return sorted(made, key=lambda one: -one.weight)[:3]
