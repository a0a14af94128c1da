"""`leadline diff --baseline A [A2 ...] -- B [B2 ...]`, or `leadline diff A B`: what changed, per step and path."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "markdown", "json", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [--baseline A ... --] B ... | A B [--format FORMAT] [-o OUT]"
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="profiles from after the change (or two files: before and after)"
    )
    parser.add_argument("--baseline", metavar="FILE", nargs="+", help="profiles from before the change")
    add_format(parser, _FORMATS)
    parser.add_argument("--top", metavar="N", type=int, default=10, help="rows per table (default: 10)")
    add_output(parser, "write to OUT instead of the terminal")


def split(argv: list[str]) -> list[str]:
    """argparse takes `--` away; a mark that no file is called by stands for it."""
    return [SIDES if word == "--" else word for word in argv]


SIDES = "\x00sides"


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.compare import compare
    from leadline.report.comparison import json_comparison, markdown_comparison, text_comparison

    files = [*([*arguments.baseline, SIDES] if arguments.baseline else []), *arguments.files]
    if arguments.baseline and files.count(SIDES) == 2:
        files.remove(SIDES)  # `--baseline A B -- C`: the mark of the command line ends the list, no side
    if SIDES in files:
        at = files.index(SIDES)
        before, after = files[:at], files[at + 1 :]
    elif len(files) == 2:
        before, after = files[:1], files[1:]
    else:
        raise CommandError(
            "diff needs profiles from before and after: leadline diff A B, or leadline diff --baseline A A2 -- B B2."
        )
    if not before or not after or SIDES in after:
        raise CommandError(
            "Each side needs at least one profile: leadline diff A B, or leadline diff --baseline A A2 -- B B2."
        )
    if arguments.top < 1:
        raise CommandError("--top needs a number of rows of 1 or more.")
    sides = [open_profile(file) for file in before], [open_profile(file) for file in after]
    found = compare(*sides)
    chosen = chosen_format(arguments, _FORMATS)
    if chosen == "json":
        text = json_comparison(found)
    elif chosen == "html":
        from leadline.report.html import render_comparison

        text = render_comparison((before[0], sides[0][0]), (after[0], sides[1][0]), found)
    else:
        text = {"text": text_comparison, "markdown": markdown_comparison}[chosen](found, arguments.top)
    write_result(text, arguments.output, force=arguments.force)
    return 0
