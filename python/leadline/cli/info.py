"""`leadline report --meta`: what is in a profile, in a few lines, without computing anything on it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from leadline.cli.files import add_newest
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_newest(parser)
    add_format(parser, _FORMATS, old=("json",))


def run(arguments: argparse.Namespace) -> int:
    """Print what the file says of itself, its tables and how large they are."""
    from leadline.cli.files import open_profile
    from leadline.report.info import facts, info_text

    found: dict[str, Any] = facts(open_profile(arguments.file), arguments.file)
    print(json.dumps(found, indent=2) if chosen_format(arguments, _FORMATS) == "json" else info_text(found))
    return 0
