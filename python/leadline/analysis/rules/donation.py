"""`donation`: results of a program of JAX could take the memory of arguments that nobody needs any more."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import calls_of, compiling, program_facts
from leadline.analysis.rules.words import listed
from leadline.units import size


class Donation(Rule):
    name = "donation"
    asks = "Could arguments of a JAX program be donated, or are some donated without use?"
    options = (
        Option("least", 16e6, "bytes", "less memory is not worth a change"),
        Option("warning", 1e9, "bytes", "above this, it decides whether a larger batch fits"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        return (self._missing(case, values) + self._vain(case, values))[:3]

    def _missing(self, case: Case, values: Values) -> list[Finding]:
        made = []
        for note in sorted(program_facts(case, "donatable"), key=lambda note: -int(note.get("bytes", 0))):
            function, spared = str(note.get("function")), int(note.get("bytes", 0))
            rows = calls_of(case, function)
            if spared < values["least"] or not len(rows):
                continue
            planned = case.tree.node(int(rows[0])).detail.get("planned_bytes")
            peak = planned.get("peak", 0) if isinstance(planned, dict) else 0
            of = (f"a run of jit({function}) holds {size(peak)} at its peak",) if peak else ()
            places = tuple(int(place) for place in note.get("places") or ())
            names = listed([str(name) for name in note.get("arguments") or ()])
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if spared >= values["warning"] else Severity.INFO,
                    f"jit({function}) keeps {size(spared)} of old arguments while it makes new ones of the same shapes",
                    case.no_gain("it saves memory: results take the memory of donated arguments"),
                    tuple(rows[:20].tolist()),
                    case.lines(rows.tolist()),
                    (f"{names}: no reference to the old ones was left when the function returned", *of),
                    f"Donate them: jax.jit({function}, donate_argnums={places}); old values cannot be read then.",
                    self.learn_more,
                    min(1.0, spared / peak) / 4 if peak else 0.05,
                    fix=f"donation={function}",
                )
            )
        return made

    def _vain(self, case: Case, values: Values) -> list[Finding]:
        made = []
        for note in program_facts(case, "donated_in_vain"):
            function, held = str(note.get("function")), int(note.get("bytes", 0))
            if held < values["least"]:
                continue
            rows = calls_of(case, function)
            rows = rows if len(rows) else compiling(case, function)[0]
            made.append(
                Finding(
                    self.name,
                    Severity.INFO,
                    f"jit({function}) cannot reuse {size(held)} of donated arguments",
                    case.no_gain("no result has the shape and type of these arguments, so no memory is reused"),
                    tuple(rows[:20].tolist()),
                    case.lines(rows.tolist()),
                    (f"donated without use: {listed([str(text) for text in note.get('arguments') or ()])}",),
                    "Leave them out of donate_argnums, or return results of their shape and type.",
                    self.learn_more,
                    0.02,
                )
            )
        return made
