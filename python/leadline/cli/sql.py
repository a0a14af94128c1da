"""`leadline query --sql`: DuckDB over the views of a profile."""

from __future__ import annotations

import argparse
import json
import math

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output, no_file
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "csv", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from leadline.query.views import VIEWS

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "views:\n" + "\n".join(f"  {name}: {about}" for name, about in VIEWS.items())
    add_newest(parser)
    parser.add_argument("statement", metavar="SQL", help="the statement, in quotes")
    add_format(parser, _FORMATS)
    add_output(parser, "write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.query import SqlError
    from leadline.query.views import run_sql

    no_file("query --sql", arguments.statement, "SQL")
    try:
        names, rows = run_sql(open_profile(arguments.file), arguments.statement)
    except SqlError as error:
        raise CommandError(str(error)) from error
    chosen = chosen_format(arguments, _FORMATS)
    write_result(_rendered(names, rows, chosen), arguments.output, force=arguments.force)
    return 0


def _rendered(names: list[str], rows: list[tuple[object, ...]], form: str) -> str:
    from leadline.report.answer import rows_text
    from leadline.report.csv_text import csv_text
    from leadline.report.source import visible

    if form == "json":
        keys = _distinct(names)
        data = [dict(zip(keys, map(_finite, row), strict=True)) for row in rows]
        return json.dumps(data, indent=1, default=str, allow_nan=False) + "\n"
    if form == "csv":
        return csv_text([names, *rows])
    shown = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    right = [all(isinstance(row[place], int | float) for row in rows) for place in range(len(names))]
    return "\n".join(rows_text([visible(name) for name in names], shown, right)) + "\n"


def _distinct(names: list[str]) -> list[str]:
    """Columns of one name are told apart as `name`, `name_2`, `name_3`, so that none is lost."""
    found: list[str] = []
    for name in names:
        number, key = 1, name
        while key in found or (key != name and key in names):
            number += 1
            key = f"{name}_{number}"
        found.append(key)
    return found


def _finite(cell: object) -> object:
    """JSON has no numbers that are none: they become null."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
