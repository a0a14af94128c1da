"""Findings for a terminal: title, line with its source, evidence, remedy, gain."""

from __future__ import annotations

import textwrap

from leadline.analysis.findings import Finding, Findings
from leadline.report.findings.words import gain_text, headline, label, line_text, silent_texts
from leadline.report.source import visible

_INDENT = " " * 4


def as_text(found: Findings, width: int = 100, colour: bool = False, *, everything: bool = False) -> str:
    """The whole answer; ends with a newline."""
    parts = [headline(found), ""]
    for number, one in enumerate(found, start=1):
        parts += [*_finding(number, one, width, colour), ""]
    silent = silent_texts(found, everything=everything)
    if silent:
        parts += ["Skipped rules", *(_wrapped(text, width, "  ") for text in silent), ""]
    parts += [_wrapped(visible(note), width, "") for note in found.notes]
    return "\n".join(parts).rstrip("\n") + "\n"


def _finding(number: int, one: Finding, width: int, colour: bool) -> list[str]:
    head = f"{number}. {label(one)}: {visible(one.title)}  [{one.rule}]"
    lines = [f"\x1b[1m{head}\x1b[0m" if colour else head]
    for line in one.lines:
        lines.append(f"{_INDENT}{line_text(line)}")
        if line.text:
            lines.append(f"{_INDENT}    {visible(line.text)[: max(width - 8, 40)]}")
    lines += [_wrapped(visible(text), width, _INDENT + "- ") for text in one.evidence]
    lines.append(_wrapped(f"Fix: {visible(one.remedy)}", width, _INDENT))
    lines.append(_wrapped(f"Gain: {visible(gain_text(one))}.", width, _INDENT))
    return lines


def _wrapped(text: str, width: int, indent: str) -> str:
    return textwrap.fill(
        text, max(width, 60), initial_indent=indent, subsequent_indent=" " * len(indent), break_long_words=False
    )
