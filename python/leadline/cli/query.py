"""`leadline query`: one line asks, a table answers."""

from __future__ import annotations

import argparse
import sys

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output, no_file
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "csv", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  leadline query FILE 'operator:aten::* sort -self top 10'\n"
        "  leadline query FILE 'python:train.py ... operator:aten::index ... kernel:*'\n"
        "  leadline query FILE 'operator:aten::item where phase != optimizer by line'\n"
        "  leadline query FILE 'module:*.attn by class show calls, time.per_step'\n\n"
        "The language is described in docs/query.md."
    )
    add_newest(parser)
    parser.add_argument("query", metavar="EXPR", help="the query, in quotes")
    add_format(parser, _FORMATS)
    add_output(parser, "write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.query import QueryError, parse, query
    from leadline.report.answer import csv_answer, json_answer, text_answer

    no_file("query", arguments.query, "EXPR")
    try:
        parse(arguments.query)  # a wrong question is told before a large file is read
        result = query(open_profile(arguments.file), arguments.query)
    except QueryError as error:
        raise CommandError(str(error)) from error
    chosen = chosen_format(arguments, _FORMATS)
    render = {"text": text_answer, "csv": csv_answer, "json": json_answer}[chosen]
    write_result(render(result), arguments.output, force=arguments.force)
    if result.note and chosen != "text":
        print(f"leadline: {result.note}", file=sys.stderr)  # not into the table
    return 0
