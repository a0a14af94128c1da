"""`analyze(profile)`: asks every rule, ranks what they found, and lets the what-if simulator speak where it can."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leadline._dataclass import replace
from leadline.analysis.already import fitting
from leadline.analysis.case import CannotTell, Case, new_case
from leadline.analysis.causes import about_gains, capped, one_of_each_cause
from leadline.analysis.findings import Failed, Finding, Findings, NotApplicable, Severity
from leadline.analysis.loop import Loop
from leadline.analysis.measurable import with_command
from leadline.analysis.own_lines import own_line_first
from leadline.analysis.rules import RULES, Rule, RuleError, find, from_file, installed
from leadline.analysis.rules.vendor import in_words_of
from leadline.analysis.simulated import Simulated
from leadline.profiles import Profile
from leadline.profiles.archive import printable
from leadline.profiles.tried import of_rule

_RANK = {Severity.WARNING: 0, Severity.INFO: 1}


def analyze(
    profile: Profile,
    rules: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    simulate: bool = True,
    case: Case | None = None,
) -> Findings:
    """The findings of a profile, the most important first.

    `rules`: names of rules to ask only these, and `.py` files that bring more; without a name all are asked.
    `settings`: `RULE.OPTION` to a value as on the command line. `simulate`: use the trace window for gains.
    `case`: an examination of the profile that goes on; by default a new one, which reads the sources again.
    Raises RuleError for a name, option or file that makes no sense. A rule that raises is in `failed`.
    """
    chosen, failed = choose(rules)
    values = _settings(chosen, settings or {})
    case = new_case(profile) if case is None else case
    found: list[tuple[Rule, Finding]] = []
    silent: list[NotApplicable] = []
    own = {id(rule) for rule in RULES}  # of which a failure is a fault of Leadline
    for rule in chosen:
        try:
            found += [(rule, own_line_first(case, one)) for one in rule.check(case, values[rule.name])]
        except CannotTell as reason:
            silent.append(NotApplicable(rule.name, str(reason)))
        except Exception as error:
            what = printable(f"{type(error).__name__}: {error}", 300)
            failed.append(Failed(rule.name, f"{what}; please report it" if id(rule) in own else what))
    simulated = Simulated(profile) if simulate else None
    kept = _without_repeats(found)
    rule_of = {one.rule: rule for rule, one in kept}
    made = [one for _, one in kept] if simulated is None else simulated.better([one for _, one in kept])
    made = one_of_each_cause([capped(case, rule_of[one.rule], one) for one in made])
    if not rules:
        made += _not_explained(case, made)
    made = [in_words_of(profile.devices, _with_package(case, fitting(case, one))) for one in made]
    made = [with_command(one, profile.meta) for one in made]
    made = [_with_tried(profile, one) for one in made]
    general = {rule.name for rule in chosen if rule.general} | {"not_explained"}
    made.sort(key=lambda one: (_RANK[one.severity], one.rule in general, -one.gain.share, -one.weight, one.rule))
    loop = case.known_loop
    ranks = case.ranks
    notes = [
        *_about_steps(loop, ranks),
        *about_gains(made),
        *(f"The rule {one.rule} failed: {one.error}." for one in failed),
        *(f"{file} has changed since the run: its lines are not shown." for file in sorted(case.sources.changed)),
    ]
    return Findings(
        tuple(made),
        tuple(silent),
        tuple(failed),
        loop.steps // ranks if loop else 0,
        int(loop.step_ns) if loop else 0,
        tuple(notes + (list(simulated.notes) if simulated else [])),
        _unlooked(case, chosen, silent),
    )


def _unlooked(case: Case, chosen: Sequence[Rule], silent: Sequence[NotApplicable]) -> str:
    """Why nothing could be looked at: no steps, or no rule of those asked applies."""
    try:
        _ = case.loop
    except CannotTell as reason:
        return str(reason)
    return silent[0].reason if silent and len(silent) == len(chosen) else ""


def _with_tried(profile: Profile, one: Finding) -> Finding:
    """What `leadline try` has measured of its remedy stands beside what is predicted."""
    said = of_rule(profile.tried, one.rule)
    return replace(one, evidence=(*one.evidence, f"measured by leadline try: {said}")) if said else one


def _not_explained(case: Case, found: Sequence[Finding]) -> list[Finding]:
    """Large parts of the step that no rule has named."""
    from leadline.verdict.unexplained import not_explained  # the account is made of what rules are made of

    try:
        return not_explained(case, found)
    except CannotTell:
        return []


def _about_steps(loop: Loop | None, ranks: int) -> list[str]:
    """What a reader must know of the figures of a step."""
    notes = []
    if loop is not None and not loop.measured_by:
        notes.append(
            f"The length of a step was not measured ({loop.found_by} were counted). Shares are of operators, phases "
            "and waits; call leadline.step() at its end, or use --cpu-sample, to include the Python between them."
        )
    if ranks > 1:
        notes.append(f"{ranks} ranks are merged: the step time is their mean.")
    return notes


def available() -> tuple[list[Rule], list[Failed]]:
    """Every rule that is installed, and those that could not be loaded."""
    others, broken = installed()
    return [*RULES, *others], [Failed(name, reason) for name, reason in broken]


def choose(names: Iterable[str]) -> tuple[list[Rule], list[Failed]]:
    """The rules to ask: those named, or all where none is; those of files besides. Raises RuleError."""
    known, failed = available()
    brought = [rule for name in names if name.endswith(".py") for rule in from_file(name)]
    named = [find(name, known) for name in names if not name.endswith(".py")]
    chosen = [*(named or known), *brought]
    return list({rule.name: rule for rule in chosen}.values()), failed


def _settings(rules: Sequence[Rule], settings: Mapping[str, str]) -> dict[str, Mapping[str, float]]:
    by_rule: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        rule, dot, option = key.partition(".")
        if not dot:
            raise RuleError(f"--set {key}={value} names no rule; write it like --set hotspot.share=10%.")
        by_rule.setdefault(find(rule, rules).name, {})[option] = value
    return {rule.name: rule.values(by_rule.get(rule.name, {})) for rule in rules}


def _with_package(case: Case, one: Finding) -> Finding:
    """Says where an installed package does most of it for the user's line, where the rule has not: there to look."""
    places = Counter(case.made_by(row) for row in one.paths)
    place, often = places.most_common(1)[0] if places else ("", 0)
    shown = [*one.evidence, *(f"{line.short}:{line.line} {line.function}" for line in one.lines)]
    if not place or 2 * often < len(one.paths) or any(place in text for text in shown):
        return one
    return replace(one, evidence=(*one.evidence, f"{'in' if len(places) == 1 else 'most of it in'} {place}"))


def _without_repeats(found: list[tuple[Rule, Finding]]) -> list[tuple[Rule, Finding]]:
    """Without the findings of general rules on lines that a special one has named."""
    special = [one for rule, one in found if not rule.general]
    named, told = _places(special), _places(one for one in special if one.of_place)
    advised = {(line.file, line.line, one.remedy) for one in special for line in one.lines}

    def is_said(one: Finding) -> bool:
        """What the place itself tells to do is said by a special rule only where that has it from the place, too."""
        again = any((line.file, line.line, one.remedy) in advised for line in one.lines[:1])
        return again or bool(_places([one]) & (told if one.of_place else named))

    return [(rule, one) for rule, one in found if not (rule.general and is_said(one))]


def _places(found: Iterable[Finding]) -> set[tuple[str, int]]:
    """The first line of each."""
    return {(line.file, line.line) for one in found for line in one.lines[:1]}


def quiet(profile: Profile, **asked: Any) -> Findings:
    """The same without a warning of NumPy on the terminal: for the end of somebody else's run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return analyze(profile, **asked)
