"""`leadline doctor`: what can be measured on this machine, and how to get what cannot. Exit code 1 when something
that should work does not."""

from __future__ import annotations

import argparse
import dataclasses
import json

from leadline.cli.checks import FAILED, OK, Finding, Section, sections
from leadline.cli.formats import add_format, chosen_format
from leadline.cli.peak import measure

_FORMATS = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two options."""
    parser.add_argument(
        "--peak", action="store_true", help="measure the peak rate of the devices here, for MFU (half a minute)"
    )
    add_format(parser, _FORMATS, old=("json",))


def run(arguments: argparse.Namespace) -> int:
    """Look at everything and print it; 0 when nothing that should work is broken, 1 otherwise."""
    if arguments.peak:
        print(measure())
        return 0
    found = [(section, _check(section)) for section in sections()]
    broken = any(finding.level == FAILED for _, findings in found for finding in findings)
    if chosen_format(arguments, _FORMATS) == "json":
        print(_as_json(found, not broken))
    else:
        print(_as_text(found, not broken))
    return 1 if broken else 0


def _check(section: Section) -> list[Finding]:
    """A section that fails itself is a finding too: the others still have something to say."""
    try:
        return section.check()
    except Exception as error:
        return [Finding("check", FAILED, f"the check itself failed ({error!r})", "please report this")]


def _as_json(found: list[tuple[Section, list[Finding]]], ok: bool) -> str:
    from leadline import __version__

    listed = [
        {"title": section.TITLE, "findings": [dataclasses.asdict(finding) for finding in findings]}
        for section, findings in found
    ]
    return json.dumps({"leadline": __version__, "ok": ok, "sections": listed}, indent=2)


def _as_text(found: list[tuple[Section, list[Finding]]], ok: bool) -> str:
    from leadline import __version__

    lines = [f"leadline {__version__}"]
    width = max(len(finding.name) for _, findings in found for finding in findings)
    for section, findings in found:
        lines += ["", section.TITLE]
        for finding in findings:
            lines.append(f"  {finding.level:<8}{finding.name:<{width + 2}}{finding.text}")
            if finding.advice and finding.level != OK:
                lines.append(f"{'':<{width + 12}}{finding.advice}")
    lines += [
        "",
        "Everything that should work on this machine works."
        if ok
        else "Something that should work on this machine does not.",
    ]
    return "\n".join(lines)
