"""`unrolled_loop`: a Python loop inside of a function under `jax.jit` became a program of its every turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import compiling, frames_of, program_facts, run_ns
from leadline.units import duration, percent

_Loop = tuple[str, int, str]
"""File, line of its head, function."""


class UnrolledLoop(Rule):
    name = "unrolled_loop"
    asks = "Does a Python loop inside of jax.jit create a very large program?"
    options = (
        Option("turns", 32, "1", "one or two dozen layers compile quickly, and run as fast as a scan"),
        Option("part", 20, "%", "of the program's operations; fewer are not what takes the compiler its time"),
        Option("compile", 1e9, "ns", "of compilation for these iterations; less is not worth a change"),
        Option("share", 20, "%", "of compilation and steps together; above this a warning"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        made = []
        for note in program_facts(case, "unrolled"):
            function = str(note.get("function"))
            rows, ns = compiling(case, function)
            every = max(int(note.get("operations", 0)), 1)
            for (outer, *inner), (turns, operations) in nests(case, note).items():
                part = ns * min(1.0, operations / every)
                if turns < values["turns"] or operations < values["part"] * every or part < values["compile"]:
                    continue
                share = part / max(run_ns(case), 1)
                made.append(
                    Finding(
                        self.name,
                        Severity.WARNING if share >= values["share"] else Severity.INFO,
                        (
                            f"Nested loops of {turns:,} iterations in all are"
                            if inner
                            else f"A loop of {turns:,} iterations is"
                        )
                        + f" unrolled into jit({function}): {operations:,} of its {every:,} operations",
                        case.no_gain("it saves compilation, at each start and for each new shape"),
                        tuple(rows[:20].tolist()),
                        tuple(case.line_at(*one) for one in (outer, *inner)),
                        (
                            f"compiling {function} took {duration(ns)}, {percent(ns / max(run_ns(case), 1))} of the "
                            f"run; about {duration(part)} of it are for this loop",
                        ),
                        "Write it as jax.lax.fori_loop, or as jax.lax.scan over what differs between iterations "
                        "(for layers: their stacked parameters), which compile its body once; in Flax there is "
                        "nn.scan.",
                        self.learn_more,
                        share / 2,
                    )
                )
        return sorted(made, key=lambda one: -one.weight)[:3]


def nests(case: Case, note: Mapping[str, Any]) -> dict[tuple[_Loop, ...], tuple[int, int]]:
    """Turns and operations of each loop in the user's source that operations were asked for in, with the loops that
    functions called there have, the outermost first: their turns are all together. Where no loop is in sight, as around
    functions that are applied to every leaf of a tree, nothing is said."""
    found: dict[tuple[_Loop, ...], tuple[int, int]] = {}
    for group in note.get("groups") or ():
        if not isinstance(group, dict):
            continue
        nest: tuple[_Loop, ...] = ()
        for file, line, name in frames_of(group):
            source = case.sources.of(file) if origin(file) == Origin.USER else None
            loops = [block for block in source.loops(line) if block.kind == "loop"] if source is not None else []
            if loops:
                nest = ((file, loops[0].first, name), *nest)
        if nest:
            turns, operations = found.get(nest, (0, 0))
            found[nest] = max(turns, int(group.get("turns", 0))), operations + int(group.get("operations", 0))
    return found
