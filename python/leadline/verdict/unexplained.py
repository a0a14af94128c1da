"""The finding `not_explained`: a part of the step that is large and that no rule has said anything about.

It says where the part is, what it is, and what to run or look at next; never that it is slower than it must be, which
nobody has checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.findings import Finding, Severity
from leadline.analysis.measurable import PROVE
from leadline.analysis.rules.place import TELLING, at_line, instead_at, known_of
from leadline.analysis.rules.whole_line import line_ns
from leadline.analysis.seldom import may_be_left_out, runs_of
from leadline.units import duration, percent
from leadline.verdict.account import account
from leadline.verdict.fixes import NOT_EXPLAINED
from leadline.verdict.model import Account, Part, Place
from leadline.verdict.resource import FEWEST_STEPS
from leadline.verdict.words import named

_SHARE = 0.1
"""Of the step, less what it stood in line for a core."""
_MOST = 3
RULES_OF = {
    "data": ("data_loading",),
    "ranks": ("communication", "imbalance"),
    "compile": ("recompilation", "compile_time", "graph_breaks", "first_steps"),
    "collection": ("garbage_collection",),
    "saving": ("saving_in_loop",),
    "device": ("synchronisation", "pageable_copies", "small_copies"),
    "optimizer": ("optimizer_loop",),
    "random": ("random_numbers",),
    "calling": ("python_overhead", "op_by_op", "cpu_latency"),
    "lock": ("interpreter_lock",),
}
"""Rules that look at the whole of a part, wherever they put it."""
_WAITS = {
    "sleep": ("sleeps", "Find the caller of the sleep (a rate limit, polling); let the loop continue meanwhile."),
    "child": (
        "waits for a child process",
        "Start the process once before the loop, call a library instead, or wait for its result later.",
    ),
    "process": (
        "waits for the output of another process",
        "Use several processes, make their work cheaper, or transfer more at once.",
    ),
    "network": ("waits for the network", "Do it in a thread, or request many items at once, outside of the step."),
    "io": ("waits for files or pipes", "Read ahead in a thread or in DataLoader workers, or cache what was read."),
    "lock": (
        "waits for a lock or the interpreter",
        "Find the thread that holds it: run `leadline dump PID` while the program runs.",
    ),
    "kernel": ("waits inside a system call", "Find the system call: record it with `--os-trace syscalls`."),
}
"""By part: what the step does, and what to do about it."""
_PLAIN = frozenset(("sleep", "child"))
"""Waits that no step needs."""
_NEXT = {
    "python": "Find its lines with `leadline run --cpu-sample 250`; cache what does not change between steps, or "
    "process all elements at once.",
    "rare": "Call it less often, or on fewer samples; or run it in another process.",
    "calling": "Find callers with `leadline report --focus`; do more in each call, or compile the model.",
    "products": "See the machine's peak with `leadline why SCRIPT`.",
    "moves": "See the machine's peak with `leadline why SCRIPT`; compiling fuses chains of operators.",
}
_COMPILED = ("calling", "moves")
"""Parts that a compiler shortens."""
_ASK = "See its parts with `leadline report --focus`."


def not_explained(case: Case, found: Sequence[Finding]) -> list[Finding]:
    """Of places with at least a tenth of the step's own time those that no finding names, at most three."""
    if case.known_loop is None or case.has_device:
        return []
    made = account(case)
    if made is None or made.steps < FEWEST_STEPS:
        return []
    own = max(made.wall_ns - made.ns("core"), 1)
    rules = {one.rule for one in found}
    lines = {(line.file, line.line) for one in found for line in one.lines}
    functions = {(line.file, line.function) for one in found for line in one.lines if line.function}
    rest = []
    for part in made.lane("thread"):
        if part.key in ("core", "unexplained") or rules & set(RULES_OF.get(part.key, ())):
            continue
        for place in part.places[:2]:
            known = (place.file, place.line) in lines
            if part.key != "rare":  # its line stands in the loop's function, of which much else may be said
                known = known or (place.file, place.function) in functions
            if place.file and place.ns >= _SHARE * own and not known and part.sure_ns < 0.6 * part.ns:
                rest.append(_finding(case, made, part, place))
                lines.add((place.file, place.line))
    rest.sort(key=lambda one: -one.weight)
    return rest[:_MOST]


def _finding(case: Case, made: Account, part: Part, place: Place) -> Finding:
    in_line = made.ns("core")
    share = place.ns / max(made.wall_ns - in_line, 1)
    taken = f"{percent(place.ns / max(made.wall_ns, 1))} of the step"
    if in_line >= _SHARE * made.wall_ns:
        taken += f" ({percent(share)} without its waits for a core)"
    who = named(place)
    waits = _WAITS.get(part.key)
    left_out = False
    instead = instead_at(case, place.file, place.line, place.what)
    most, bound = float(place.ns * case.loop.steps), "bound: all of its time (Amdahl)"
    if instead and (at := at_line(case, place.file, place.line, place.what)) is not None:
        most, bound = (
            max(most, line_ns(case, at.row)),
            "bound: all the time of this line, and what waits for it (Amdahl)",
        )
    if waits is not None:
        title = f"{who} {waits[0]}, {taken}"
        gain = case.gain(place.ns * case.loop.steps, (0, 0.8, 1), "bound: the wait itself")
    elif part.key == "python":
        title = f"{who} takes {taken}, in Python"
        gain = case.at_most(most, bound)
    elif part.key == "rare":
        row = _row_of(case, place)
        number = runs_of(case, row) if row >= 0 else 0
        often = f"in {number:,} of {case.loop.steps:,} steps" if number else "not in every step"
        title = f"{who}, {often}, takes {taken.replace('of the step', 'of the mean step', 1)}"
        left_out = row >= 0 and may_be_left_out(case, row)
        gain = (
            case.gain(place.ns * case.loop.steps, (0, 0.5, 1), "bound: all of its time (Amdahl)")
            if left_out
            else case.at_most(most, bound)
        )
    else:
        title = f"{who} takes {taken}: {part.label.split(' (')[0]}"
        gain = case.at_most(most, bound)
    evidence = [f"{duration(place.ns)} of {duration(made.wall_ns)} a step ({part.known})"]
    if place.below:
        evidence.append(f"below this line: {place.below}")
    if known := known_of(case, place.file, place.line, place.what, place.ns, least=TELLING):
        evidence.append(f"it {known}")
    if waits is None and not instead:
        evidence.append("no rule explains it")
    plain = part.key in _PLAIN or bool(instead)
    severity = Severity.WARNING if plain and share >= 2 * _SHARE else Severity.INFO
    following = _ASK if part.key == "rare" and not left_out else _NEXT.get(part.key, _ASK)
    remedy = instead or (waits[1] if waits is not None else following)
    return Finding(
        NOT_EXPLAINED,
        severity,
        title,
        gain,
        (),
        (case.line_at(place.file, place.line, place.function),),
        tuple(evidence),
        remedy,
        "docs/verdict.md#not-explained",
        share,
        of_place=bool(instead),
        measured_by="" if part.key in _COMPILED else PROVE,
    )


def _row_of(case: Case, place: Place) -> int:
    """The node of a line that not every step comes to; -1 where there is none."""
    for row in np.flatnonzero(case.rare_lines).tolist():
        line = case.line(row)
        if line is not None and (line.file, line.line) == (place.file, place.line):
            return int(row)
    return -1
