"""A trial as a table for a terminal, with the verdicts in words below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.trials.judge import LEAST_TO_TELL
from leadline.trials.ledger import Summary
from leadline.trials.model import (
    DIFFERENT,
    EQUAL,
    MEASURED,
    UNKNOWN,
    WITHIN_SPREAD,
    Change,
    Predicted,
    Row,
    Trial,
    has_held,
)
from leadline.units import duration, percent, size

_GAP = "   "


def table(trial: Trial) -> str:
    """A line for each variant, then the verdicts and how it was measured."""
    heads, rows = columns(trial)
    steps = [duration(row.step_ns) if row.step_ns else "-" for row in trial.rows]
    listed = zip(trial.rows, steps, rows, strict=True)
    cells = [["", "step", *heads], *([one.name, step, *row] for one, step, row in listed)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    lines = [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*lines, "", *_verdicts(trial), "", *notes(trial)]) + "\n"


def columns(trial: Trial) -> tuple[list[str], list[list[str]]]:
    """Heads behind name and step, and the cells of each row; columns that no row has anything for are left out."""
    has_loss = any(row.equality is not None and row.equality.last is not None for row in trial.rows)
    computed = f"{'loss' if has_loss else 'results'} after {trial.steps + trial.warm_up} steps"
    heads = ["change", computed, "peak memory", "predicted", "held"]
    rows = [_cells(row) for row in trial.rows]
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        _change(row.change) if row.change is not None and row.change.rounds >= LEAST_TO_TELL else "",
        _loss(row),
        _memory(row),
        _predicted(row.predicted) if row.predicted is not None else "",
        _held(row.held) if row.predicted is not None and row.verdict in MEASURED else "",
    )


def _held(held: bool | None) -> str:
    return {True: "yes", False: "no", None: "too close to tell"}[held]


def _change(one: Change) -> str:
    if one.low <= 0 <= one.high:
        return f"none ({_signed(one.low)}, {_signed(one.high)})"
    return f"{_signed(one.median)} % ({_signed(one.low)}, {_signed(one.high)})"


def _predicted(one: Predicted) -> str:
    return f"{_signed(one.median)} % ({_signed(one.low)}, {_signed(one.high)})"


def _signed(share: float) -> str:
    value = 100 * share
    text = f"{value:+.1f}" if abs(value) < 3 else f"{value:+.0f}"
    return text if float(text) else "0"


def _loss(row: Row) -> str:
    computed = row.equality
    if computed is None:
        return ""
    words = {EQUAL: "(equal)", WITHIN_SPREAD: "(as baseline)", DIFFERENT: "(different)"}.get(computed.kind, "")
    return f"{computed.last:.4f} {words}".rstrip() if computed.last is not None else words.strip("()")


def _memory(row: Row) -> str:
    """Of tensors where a device counts them, else of the process."""
    value = row.memory.get("tensors") or row.memory.get("process")
    return size(value) if value else ""


def _verdicts(trial: Trial) -> list[str]:
    width = max((len(row.name) for row in trial.rows[1:]), default=0)
    lines = []
    for row in trial.rows[1:]:
        said = row.sentence
        said += _computed(row)
        lines.append(f"{row.name:<{width}}{_GAP}{said}")
        if row.verdict in ("failed", "cannot be compared") and row.reason:
            lines += [f"    {line}" for line in row.reason.splitlines()]
    return lines


def _computed(row: Row) -> str:
    """What the verdict on time leaves out of what was computed."""
    found, is_timed = row.equality, row.verdict in ("faster", "slower")
    if found is None:
        return ""
    if found.kind == WITHIN_SPREAD and is_timed:
        return f"; losses {found.sentence}"
    is_partly = found.kind == EQUAL and "norm" in found.sentence
    return f"; {found.sentence}" if is_partly or (found.kind == UNKNOWN and is_timed) else ""


def notes(trial: Trial) -> list[str]:
    """How it was measured, then what was not as asked."""
    noise = f"the baseline differs by {percent(trial.noise)} from run to run" if trial.noise else "one run of each"
    device = trial.versions.get("device", "")
    rounds = f"{trial.rounds} round{'s' if trial.rounds != 1 else ''}"
    head = (
        f"{rounds}, in each {trial.steps} steps after {trial.warm_up} of warm-up, counted by "
        f"{_MARKS.get(trial.mark, trial.mark)}; {noise}{'; ' + device if device else ''}. "
        "Brackets are the 95 % interval of the change."
    )
    return [head, *trial.notes]


_MARKS = {
    "leadline.step": "calls of leadline.step",
    "optimizer": "optimizer steps",
    "batches": "batches loaded",
    "module calls": "calls of the outermost module",
    "program calls": "calls of a compiled program",
}


def ledger_table(entries: Sequence[Mapping[str, Any]], found: Summary) -> str:
    """Each entry on a line, then how far predictions have held."""
    head = ["program", "remedy", "measured", "predicted", "held"]
    rows = [head]
    for one in entries:
        predicted = one.get("predicted")
        held = ""
        if predicted:
            held = _held(has_held(one["measured"], predicted))
        rows.append(
            [one["program"], one["remedy"], _range(one["measured"]), _range(predicted) if predicted else "-", held]
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    lines = [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *_ledger_sentences(found)]) + "\n"


def _ledger_sentences(found: Summary) -> list[str]:
    lines = [f"{found.entries} measured, {found.predicted} of them predicted with a range."]
    judged = found.predicted - found.open
    if judged:
        coarse = f"; {found.open} more measurements are too coarse to judge" if found.open else ""
        lines.append(
            f"Coverage: {found.held} of {judged} ranges held the measured change "
            f"({percent(found.held / judged)}){coarse}. Sharpness: half a range is {percent(found.half_width)} of the "
            f"step in the median. Error: {percent(found.error)} of the step in the median, at most "
            f"{percent(found.error_95)} in 95 % of the cases."
        )
    if found.unreadable:
        lines.append(f"{found.unreadable} lines could not be read and are left out.")
    return lines


def _range(one: Mapping[str, float]) -> str:
    return f"{_signed(one['median'])} % ({_signed(one['low'])}, {_signed(one['high'])})"
