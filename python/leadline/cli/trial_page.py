"""A trial as one page of changes: what was measured of each remedy, the shortest step first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.report.changes import Bar, Changes, Group
    from leadline.trials.model import Row, Trial


def trial_changes(trial: Trial, title: str) -> Changes:
    from leadline.report.changes import Advice, Changes
    from leadline.trials.model import FASTER
    from leadline.trials.text import columns, notes

    base, *others = trial.rows
    heads, cells = columns(trial)
    shorter = [row for row in others if row.verdict == FASTER and row.change is not None]
    shorter.sort(key=lambda row: row.change.median if row.change else 0.0)
    shown = shorter or [row for row in others if row.step_ns]
    of_row = dict(zip((row.name for row in trial.rows), cells, strict=True))
    return Changes(
        title,
        trial.program,
        f"{trial.rounds} round{'s' * (trial.rounds != 1)} of {trial.steps} steps",
        "a step, baseline",
        _sentence(trial, shorter),
        tuple(notes(trial)[:1]),
        (_bar(base, base), *(_bar(row, base) for row in shown[:4])),
        tuple(Advice(row.name, row.sentence, "measured", tuple(filter(None, (_computed(row),)))) for row in shorter),
        tuple(heads),
        tuple(_groups(trial, of_row)),
        tuple(notes(trial)[1:]),
    )


def _sentence(trial: Trial, shorter: list[Row]) -> str:
    from leadline.units import duration

    base, *others = trial.rows
    if shorter:
        best = shorter[0]
        return f"With {best.name} a step takes {duration(best.step_ns)} instead of {duration(base.step_ns)}"
    if len(others) == 1:
        return f"{others[0].name}: {others[0].sentence}"
    return f"Nothing that was tried makes a step of {duration(base.step_ns)} faster"


def _computed(row: Row) -> str:
    return f"losses: {row.equality.sentence}" if row.equality is not None and row.equality.sentence else ""


def _more(row: Row) -> tuple[str, ...]:
    return tuple(filter(None, (row.sentence, _computed(row), *row.reason.splitlines())))


def _bar(row: Row, base: Row) -> Bar:
    from leadline.report.changes import Bar
    from leadline.trials.judge import LEAST_TO_TELL

    if row is base:
        return Bar("baseline", row.step_ns, before=True)
    found = row.change
    if found is None or found.rounds < LEAST_TO_TELL:
        return Bar(row.name, row.step_ns)
    low, high = (max(base.step_ns * (1 + one), 0.0) for one in (found.low, found.high))
    return Bar(row.name, row.step_ns, low, high, gains=found.high < 0)


def _groups(trial: Trial, cells: dict[str, list[str]]) -> list[Group]:
    from leadline.report.changes import Group
    from leadline.report.changes import Row as Shown
    from leadline.trials.model import NO_DIFFERENCE, NOT_APPLIED

    base, *others = trial.rows
    nothing = [row for row in others if row.verdict in (NO_DIFFERENCE, NOT_APPLIED)]
    tells = [base, *(row for row in others if row not in nothing)]
    made = (("Measured", tells, False), (f"{len(nothing)} that gain{'s' * (len(nothing) == 1)} nothing", nothing, True))
    return [
        Group(
            title,
            tuple(Shown(_bar(row, base), tuple(cells[row.name]), row.verdict, _more(row)) for row in rows),
            folded and len(others) > len(nothing),
        )
        for title, rows, folded in made
        if rows
    ]
