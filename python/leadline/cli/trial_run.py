"""What `leadline try` and `leadline prove` do once they know the programs: first run, rounds, rows, the result."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.capture.messages import say
from leadline.cli.errors import CommandError

if TYPE_CHECKING:
    from leadline.capture.supervisor import Command
    from leadline.remedies.base import Remedy
    from leadline.trials.first import First
    from leadline.trials.model import Predicted, Trial
    from leadline.trials.rounds import Rounds
    from leadline.trials.scratch import Scratch
    from leadline.trials.variant import Variant


class _Progress:
    """One line that is rewritten in a terminal, else a line for each run."""

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: no run is left behind
        self._began = time.monotonic()
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    def __call__(self, sentence: str) -> None:
        text = f"leadline: [{time.monotonic() - self._began:4.0f} s] {sentence}"
        if self._is_terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            self._width = len(text)
            sys.stderr.flush()
        else:
            say(sentence)

    def done(self) -> None:
        if self._is_terminal and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0


def limit_s(arguments: argparse.Namespace) -> float:
    from leadline.capture.durations import seconds
    from leadline.capture.errors import ProfileError

    try:
        return seconds(arguments.limit, "--limit")
    except ProfileError as error:
        raise CommandError(str(error)) from error


def try_remedies(
    command: Command,
    folder: str,
    remedies: Sequence[tuple[Remedy, str]],
    profile: Path | None,
    arguments: argparse.Namespace,
) -> Trial:
    """Raises CommandError."""
    from leadline.trials import ledger
    from leadline.trials.scratch import Scratch
    from leadline.trials.suggest import Suggestions, rules_of
    from leadline.trials.variant import BASELINE, Variant

    base = Variant(BASELINE, command.argv, folder)
    scratch = Scratch(in_place=arguments.in_place)
    progress = _Progress()
    try:
        first = _first(base, scratch, arguments, progress, measured=profile is None and not arguments.no_predict)
        suggestions = Suggestions(profile or first.profile, first.packages)
        chosen = list(remedies) or suggestions.remedies()
        if not chosen:
            raise CommandError(
                "The profile suggests no fix that can be made without an edit; name one with --fix "
                "(`leadline try --list`).",
                1,
            )
        variants = [base, *(Variant(one.title, command.argv, folder, ((one, _full(file)),)) for one, file in chosen)]
        predicted = [None, *(suggestions.predicted(one) for one, _ in chosen)]
        trial = compare(variants, predicted, first, scratch, arguments, progress, shlex.join(command.typed))
    finally:
        progress.done()
        scratch.close()
    if not arguments.no_ledger:
        beside = profile.resolve().parent if profile is not None else Path(folder)
        ledger.append(beside / ledger.NAME, trial, {one.title: rules_of(one) for one, _ in chosen})
    return trial


def prove(before: Variant, after: Variant, program: str, arguments: argparse.Namespace) -> Trial:
    """A change of the user's own. Raises CommandError."""
    from leadline.trials.scratch import Scratch

    scratch = Scratch(in_place=arguments.in_place)
    progress = _Progress()
    try:
        first = _first(before, scratch, arguments, progress, measured=False)
        return compare((before, after), (None, None), first, scratch, arguments, progress, program)
    finally:
        progress.done()
        scratch.close()


def _full(file: str) -> str:
    return str(Path(file).resolve()) if file else ""


def _first(
    base: Variant, scratch: Scratch, arguments: argparse.Namespace, progress: _Progress, *, measured: bool
) -> First:
    from leadline.trials.first import first_run
    from leadline.trials.model import TrialError

    try:
        first = first_run(
            base,
            arguments.steps,
            arguments.warm_up,
            scratch,
            measured=measured,
            limit_s=limit_s(arguments),
            tell=progress,
        )
    except TrialError as error:
        progress.done()
        raise CommandError(str(error), 1) from error
    progress.done()
    for note in first.notes:
        say(note)
    return first


def compare(
    variants: Sequence[Variant],
    predicted: Sequence[Predicted | None],
    first: First,
    scratch: Scratch,
    arguments: argparse.Namespace,
    progress: _Progress,
    program: str,
) -> Trial:
    """Rounds, then rows. Raises CommandError where the baseline fails."""
    from leadline.trials.judge import baseline_row, judged, noise
    from leadline.trials.model import Trial, TrialError
    from leadline.trials.rounds import take_turns

    try:
        rounds = take_turns(
            variants,
            first.plan,
            scratch,
            limit_s=max(limit_s(arguments) - first.seconds, 0.0),
            least=arguments.rounds,
            tell=progress,
        )
    except TrialError as error:
        progress.done()
        raise CommandError(str(error), 1) from error
    progress.done()
    base = [one for one in rounds.base if one is not None and one.step_ns]
    if not base:
        raise CommandError("The trial was stopped before the first run of the baseline ended; there is no result.", 130)
    rows = [baseline_row(variants[0], base)]
    for place, variant in list(enumerate(variants))[1:]:
        rows.append(
            judged(
                variant,
                rounds.base,
                rounds.runs[place],
                rounds.spread,
                predicted[place],
                rounds.refused[place],
            )
        )
    plan = rounds.plan
    return Trial(
        program,
        rows,
        plan.steps,
        plan.warm_up,
        plan.mark,
        rounds.number,
        noise(base),
        (*first.notes, *notes_of(rounds, arguments)),
        dict(base[0].record.get("versions", {})),
        complete=not (rounds.interrupted or rounds.stopped),
        sources=dict(base[0].record.get("sources", {})),
    )


def notes_of(rounds: Rounds, arguments: argparse.Namespace) -> list[str]:
    notes = []
    if rounds.interrupted:
        notes.append("Ctrl-C ended the trial; these are the rounds until then.")
    elif rounds.stopped:
        notes.append(f"{rounds.stopped} These are the rounds until then.")
    if rounds.left_out:
        names = ", ".join(rounds.variants[one].name for one in sorted(rounds.left_out))
        notes.append(f"There was no time for {names}: a larger --limit, or --fix with one of them, tries it.")
    if not rounds.interrupted and not rounds.stopped and rounds.number < arguments.rounds and not rounds.is_decided:
        notes.append(
            f"The time was up after {rounds.number} of {arguments.rounds} rounds; a larger --limit, fewer fixes or "
            "smaller --steps allow all."
        )
    if rounds.spread.repeats:
        notes.append(
            "The baseline differs from run to run by itself: its losses or parameters are not bitwise identical."
        )
    faults = sorted({fault for one in rounds.base if one is not None for fault in one.record.get("faults", ())})
    notes += [f"A run could not record everything ({fault})." for fault in faults]
    return notes


def write(trial: Trial, arguments: argparse.Namespace) -> None:
    from leadline.cli.files import write_result
    from leadline.cli.formats import chosen_format
    from leadline.cli.trial_arguments import FORMATS
    from leadline.trials.model import as_object
    from leadline.trials.text import table

    chosen = chosen_format(arguments, FORMATS)
    if chosen == "json":
        text = json.dumps(_finite(as_object(trial)), indent=2, allow_nan=False) + "\n"
    elif chosen == "html":
        from leadline.cli.trial_page import trial_changes
        from leadline.report.html import render_changes

        text = render_changes(trial_changes(trial, "Tried and measured"))
    else:
        text = table(trial)
    write_result(text, arguments.output, force=arguments.force)


def _finite(value: object) -> object:
    """JSON has no infinities: they are null there."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
