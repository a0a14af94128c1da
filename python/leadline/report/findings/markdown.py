"""Findings as markdown that fits a pull request. Names are escaped; source stands in code spans."""

from __future__ import annotations

from leadline.analysis.findings import Finding, Findings
from leadline.report.findings.words import gain_text, headline, label, line_text, silent_texts
from leadline.report.markup import code, escaped


def as_markdown(found: Findings) -> str:
    """Ends with a newline."""
    parts = ["# Findings", "", escaped(headline(found)), ""]
    for number, one in enumerate(found, start=1):
        parts += [*_finding(number, one), ""]
    silent = silent_texts(found)
    if silent:
        parts += ["## Skipped rules", "", *(f"- {escaped(text)}" for text in silent), ""]
    parts += [escaped(note) for note in found.notes]
    return "\n".join(parts).rstrip("\n") + "\n"


def _finding(number: int, one: Finding) -> list[str]:
    lines = [f"## {number}. {escaped(one.title)}", "", f"{label(one)}, rule `{one.rule}`", ""]
    for line in one.lines:
        text = f": {code(line.text)}" if line.text else ""
        lines.append(f"- {escaped(line_text(line))}{text}")
    lines += [f"- {escaped(text)}" for text in one.evidence]
    return [*lines, "", f"**Do:** {escaped(one.remedy)}", "", f"**Gain:** {escaped(gain_text(one))}."]
