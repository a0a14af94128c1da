"""`--format`, the same for every subcommand that has more than one form of its answer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

_ENDINGS = {".json": "json", ".md": "markdown", ".html": "html", ".htm": "html", ".csv": "csv", ".sarif": "sarif"}


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str], *, old: Sequence[str] = ()) -> None:
    """`--format` with `formats`, the first by default. `old`: those that earlier versions took as `--NAME`."""
    parser.add_argument(
        "--format", choices=formats, help=f"output format (default: from the ending of OUT, else {formats[0]})"
    )
    for name in old:
        parser.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=argparse.SUPPRESS)


def chosen_format(arguments: argparse.Namespace, formats: Sequence[str]) -> str:
    """What `--format` says, else the ending of the output, else the first of `formats`."""
    return arguments.format or format_of(getattr(arguments, "output", None), formats)


def format_of(output: str | None, formats: Sequence[str]) -> str:
    """The one of `formats` that the ending of the output says; the first of them where it says none."""
    said = _ENDINGS.get(Path(output).suffix.lower(), "") if output else ""
    return said if said in formats else formats[0]
