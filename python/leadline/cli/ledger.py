"""`leadline ledger`: how far predictions have held, of all that `leadline try` has measured here."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from leadline._dataclass import asdict
from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="*", help="ledgers (default: leadline-ledger.jsonl in this directory)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json, on stdout")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the result to a file instead of the terminal")
    parser.add_argument("--force", action="store_true", help="replace OUT")


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
    if arguments.format == "json":
        text = json.dumps({"summary": asdict(summary), "entries": entries}, indent=2, allow_nan=False) + "\n"
    else:
        text = ledger_table(entries, summary)
    write_result(text, arguments.output, force=arguments.force)
    return 0
