"""`leadline analyze`: named problems of a profile, with evidence, the user's line, the remedy and its gain."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError
from leadline.cli.files import A_FILE, add_output, add_source_root
from leadline.cli.formats import add_format, chosen_format

if TYPE_CHECKING:
    from leadline.analysis.findings import Findings
    from leadline.profiles import Profile

_FORMATS = ("text", "markdown", "json", "sarif", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help=A_FILE)
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this rule; may be repeated; a .py file adds the rules that it defines",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="RULE.KEY=VALUE",
        dest="settings",
        help="set an option of a rule, such as hotspot.share=10%%",
    )
    parser.add_argument(
        "--all", "--verbose", action="store_true", help="list the rules that did not apply, with their reasons"
    )
    parser.add_argument("--list", action="store_true", help="list the rules and their options, with reasons")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 1 if there is a warning, with 3 if the rules could not look (default: 0)",
    )
    add_format(parser, _FORMATS)
    add_output(parser, "write to OUT instead of the terminal")
    add_source_root(parser)
    parser.add_argument(
        "--save",
        action="store_true",
        help="store findings and summary in FILE, for viewers without Python",
    )


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import load_numpy

    load_numpy()
    from leadline.analysis.analyze import analyze
    from leadline.analysis.findings import EXIT_CODES
    from leadline.analysis.rules import RuleError
    from leadline.cli.files import newest_profile, open_profile, write_result
    from leadline.report.findings import FORMATS

    chosen = chosen_format(arguments, _FORMATS)
    try:
        if arguments.list:
            write_result(_listing(arguments.rule, chosen == "markdown"), arguments.output, force=arguments.force)
            return 0
        if not arguments.file:
            arguments.file = newest_profile()
        if arguments.save:
            _check_profile(arguments.file)
        profile = open_profile(arguments.file)
        found = analyze(profile, arguments.rule, _settings(arguments.settings))
    except RuleError as error:
        raise CommandError(str(error)) from error
    for broken in found.failed:
        print(f"leadline: the rule {broken.rule} failed: {broken.error}", file=sys.stderr)
    if arguments.save:
        _save(arguments.file, found, summary=not arguments.rule)
    if chosen == "json":
        text = _json(profile, found, every_rule=not arguments.rule)
    elif chosen == "text" and arguments.output in (None, "-"):
        text = _terminal(profile, found, every_rule=not arguments.rule, everything=arguments.all)
    else:
        text = FORMATS[chosen](found)
    write_result(text, arguments.output, force=arguments.force)
    return EXIT_CODES[found.state] if arguments.exit_code else 0


def _terminal(profile: Profile, found: Findings, *, every_rule: bool, everything: bool) -> str:
    from leadline.report.encoding import for_stream
    from leadline.report.findings import as_text
    from leadline.report.source import visible
    from leadline.verdict.judge import quietly
    from leadline.verdict.text import as_lines, head

    width, colour = for_stream(sys.stdout)
    verdict = quietly(profile, found) if every_rule else None
    first = [visible(one) for one in (head(verdict), *as_lines(verdict, width), "")] if verdict is not None else []
    return "\n".join([*first, as_text(found, width, colour, everything=everything)])


def _json(profile: Profile, found: Findings, *, every_rule: bool) -> str:
    """The findings, and the verdict that they serve where every rule was asked."""
    from leadline.analysis.findings import as_object
    from leadline.verdict import as_object as verdict_object
    from leadline.verdict.judge import quietly

    verdict = quietly(profile, found) if every_rule else None
    whole = {**as_object(found), "verdict": verdict_object(verdict) if verdict is not None else None}
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or "." not in name:
            raise CommandError(f"--set {pair} is not RULE.KEY=VALUE; write it like --set hotspot.share=10%.")
        found[name.strip()] = value.strip()
    return found


def _listing(names: Sequence[str], markdown: bool) -> str:
    """Every rule with its options and the reasons for their defaults."""
    from leadline.analysis.analyze import choose

    rules, _ = choose(names)
    lines = []
    for rule in rules:
        lines += [f"## {rule.name}", "", rule.asks, ""] if markdown else [f"{rule.name}: {rule.asks}"]
        for option in rule.options:
            unit = "" if option.unit == "1" else f" {option.unit}"
            name, indent = (f"`{option.name}`", "- ") if markdown else (option.name, "    ")
            lines.append(f"{indent}{name} (default {option.default:g}{unit}): {option.reason}")
        lines += [""] if markdown and rule.options else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _check_profile(file: str) -> None:
    """Findings are kept in a profile only, never in the trace that one was made of."""
    from leadline._output import is_package

    if Path(file).is_file() and not is_package(Path(file)):
        raise CommandError(
            f"--save keeps findings in a profile, and {file} is none; make one with "
            f"`leadline import {file} -o NAME.leadline`."
        )


def _save(file: str, found: Findings, summary: bool) -> None:
    """The findings into the profile's meta.json, in place of older ones, and what viewers without Python show first."""
    from leadline.analysis.findings import as_object
    from leadline.cli.files import open_profile, write_file
    from leadline.report.html import stored_report

    profile = open_profile(file)
    profile.meta["findings"] = as_object(found)
    if summary:
        profile.meta["report"] = stored_report(profile, found, Path(file).name)
    write_file(profile, file)
