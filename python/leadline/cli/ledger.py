"""`leadline ledger`: how far predictions have held, of all that `leadline try` has measured here."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from leadline._dataclass import asdict
from leadline.cli.errors import CommandError
from leadline.cli.files import add_output
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="*", help="ledgers (default: leadline-ledger.jsonl in this directory)"
    )
    add_format(parser, _FORMATS)
    add_output(parser, "write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import write_result
    from leadline.trials import ledger
    from leadline.trials.text import ledger_table

    entries, bad = [], 0
    for name in arguments.file or [ledger.NAME]:
        try:
            found, unreadable = ledger.read(Path(name))
        except OSError as error:
            raise CommandError(
                f"Cannot read {name}: {error.strerror}; `leadline try` writes one; run it here first."
            ) from error
        entries += found
        bad += unreadable
    summary = ledger.summary(entries, bad)
    if chosen_format(arguments, _FORMATS) == "json":
        text = json.dumps({"summary": asdict(summary), "entries": entries}, indent=2, allow_nan=False) + "\n"
    else:
        text = ledger_table(entries, summary)
    write_result(text, arguments.output, force=arguments.force)
    return 0
