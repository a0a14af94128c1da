"""A comparison as text, Markdown for a pull request, and JSON. What hinders comparing comes before any
number."""

from __future__ import annotations

import dataclasses
import json

from leadline.compare import Change, Diff, Figure, Verdict
from leadline.report.answer import rows_text
from leadline.report.markup import code, escaped
from leadline.report.phrases import name_text
from leadline.units import change, counted, duration, number, size

STEP = " › "
_JSON_ROWS = 1_000
_TERMINAL = 56
"""Characters of a path, so that a line with its figures fits a terminal of 100 columns."""


def text_comparison(diff: Diff, top: int = 10) -> str:
    """For a terminal."""
    lines = [*_hindrances(diff), _runs(diff), ""]
    lines += rows_text(("per step", "A", "B", "change", "interval", ""), _totals(diff), _RIGHT)
    for title, changes in _sections(diff, top):
        lines += ["", title]
        lines += rows_text(
            ("path", "A", "B", "change", "calls", ""), [_change(one, _TERMINAL) for one in changes], _RIGHT
        )
    for name, rows in diff.groups.items():
        lines += ["", f"by {name}"]
        lines += rows_text((name, "A", "B", "change"), _group(rows, top), (False, True, True, True))
    lines += [""] + [f"renamed   {name_text(a)} is now {name_text(b)}" for a, b in diff.renamed[:top]]
    lines += [f"moved     {name_text(name)} from {name_text(a)} to {name_text(b)}" for name, a, b in diff.moved[:top]]
    return "\n".join(lines).rstrip() + "\n"


def markdown_comparison(diff: Diff, top: int = 10) -> str:
    """Fits a comment of a pull request."""
    blocks = ["\n".join(f"> **Not the same conditions.** {escaped(line)}" for line in _hindrances(diff))]
    blocks += [_runs(diff), _table(("per step", "A", "B", "change", "interval", "verdict"), _totals(diff))]
    for title, changes in _sections(diff, top):
        rows = [_change(one) for one in changes]
        blocks += [f"### {title}", _table(("path", "A", "B", "change", "calls", "verdict"), rows)]
    for name, groups in diff.groups.items():
        table = _table((name, "A", "B", "change"), _group(groups, top))
        blocks.append(f"<details><summary>by {name}</summary>\n\n{table}\n\n</details>")
    blocks += [f"Renamed: {code(a)} is now {code(b)}." for a, b in diff.renamed[:top]]
    blocks += [f"Moved: {code(name)} from {escaped(a)} to {escaped(b)}." for name, a, b in diff.moved[:top]]
    return "\n\n".join(block for block in blocks if block) + "\n"


def comparison_object(diff: Diff, most: int = _JSON_ROWS) -> dict[str, object]:
    """Every field of `leadline.compare.Diff`, the sentences that belong to it, and how many changes there are in all:
    what `leadline diff --format json` prints and the page shows. Times are nanoseconds per step, ratios B over A."""
    limited = dataclasses.replace(diff, changes=diff.changes[:most])
    found = _finite({**dataclasses.asdict(limited), "change_count": len(diff.changes), "smallest": diff.smallest})
    assert isinstance(found, dict)
    return found


def json_comparison(diff: Diff, verdict: Verdict | None = None, most: int = _JSON_ROWS) -> str:
    """`comparison_object`, with the gate's verdict where there is one."""
    data = comparison_object(diff, most)
    if verdict is not None:
        data["verdict"] = {"code": verdict.code, "word": verdict.word, "reasons": verdict.reasons}
    return json.dumps(data, indent=1) + "\n"


def markdown_verdict(diff: Diff, verdict: Verdict) -> str:
    """The verdict with its reasons and the whole comparison, for a comment of a pull request."""
    lines = [f"**gate: {verdict.word}**", "", *(f"- {escaped(name_text(reason))}" for reason in verdict.reasons)]
    return "\n".join(lines) + "\n\n" + markdown_comparison(diff)


def text_verdict(verdict: Verdict) -> str:
    """`gate: failed`, the reasons, the paths."""
    lines = [f"gate: {verdict.word}", *(f"  {name_text(reason)}" for reason in verdict.reasons)]
    lines += [f"  {_change(one)[0]}  {_change(one)[3]}" for one in verdict.paths]
    return "\n".join(lines) + "\n"


_RIGHT = (False, True, True, True, True, False)


def _hindrances(diff: Diff) -> list[str]:
    return [name_text(sentence) for _, sentence in diff.differences]


def _runs(diff: Diff) -> str:
    a, b = diff.runs
    return (
        f"A: {counted(a, 'run')} of {counted(diff.steps[0], 'step')}, B: {b} of {diff.steps[1]:,}. {diff.smallest}"
        + (f" {diff.doubt}" if diff.doubt else "")
    )


def _totals(diff: Diff) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("time", *_figure(diff.step))]
    if diff.work != diff.step:
        rows.append(("time in operators", *_figure(diff.work)))
    if diff.gpu is not None:
        rows.append(("device time", *_figure(diff.gpu)))
    for name, (a, b), show in (
        ("allocated memory", diff.alloc, size),
        ("peak memory (whole run)", diff.peak, size),
        ("calls", diff.calls, number),
    ):
        if a or b:
            rows.append((name, show(a), show(b), _percent(a, b), "", ""))
    return rows


def _figure(figure: Figure) -> tuple[str, str, str, str, str]:
    interval = f"{change(figure.low - 1)} to {change(figure.high - 1)}" if figure.a else ""
    verdict = figure.verdict
    return duration(figure.a), duration(figure.b), _percent(figure.a, figure.b), interval, verdict


def _sections(diff: Diff, top: int) -> list[tuple[str, list[Change]]]:
    """What is more than noise first: a list of differences that mean nothing hides the one that does."""
    paths = [one for one in diff.changes if one.status in ("both", "renamed")]
    noise = [one for one in paths if one.time.verdict not in ("slower", "faster") and one.delta_ns]
    sections = [
        ("slower paths", [one for one in paths if one.time.verdict == "slower"]),
        ("faster paths", [one for one in paths if one.time.verdict == "faster"]),
        ("added", [one for one in diff.changes if one.status == "added"]),
        ("removed", [one for one in diff.changes if one.status == "removed"]),
        (f"no clear change: the largest of {counted(len(noise), 'path')}", noise[: max(top // 2, 1)]),
    ]
    return [(title, changes[:top]) for title, changes in sections if changes]


def _change(change: Change, width: int = 110) -> tuple[str, ...]:
    calls = f"{number(round(change.calls[0], 1))}"
    if change.calls[0] != change.calls[1]:
        calls += f" to {number(round(change.calls[1], 1))}"
    delta = duration(abs(change.delta_ns))
    text = STEP.join(name_text(part) for part in change.path)
    verdict = "" if change.status in ("added", "removed") else change.time.verdict
    sign = "+" if change.delta_ns >= 0 else "-"
    return _cut(text, width), duration(change.time.a), duration(change.time.b), sign + delta, calls, verdict


def _group(rows: tuple[tuple[str, float, float], ...], top: int) -> list[tuple[str, ...]]:
    return [
        (name_text(name) if name else "(none)", duration(a), duration(b), _percent(a, b)) for name, a, b in rows[:top]
    ]


def _percent(a: float, b: float) -> str:
    return change(b / a - 1) if a else "new" if b else "0.0 %"


def _cut(text: str, width: int = 110) -> str:
    return text if len(text) <= width else text[: width // 3] + " … " + text[-(2 * width // 3 - 3) :]


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [
        header,
        ("---", *("---:" for _ in header[1:])),
        *(tuple(escaped(cell) for cell in row) for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return None
    return value
