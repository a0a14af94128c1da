"""Options that `leadline try` and `leadline prove` share."""

from __future__ import annotations

import argparse

from leadline.cli.files import add_output
from leadline.cli.formats import add_format

FORMATS = ("text", "json", "html")
WARM_UP, LIMIT = 5, "10min"
WITH_VALUE = (
    "--steps",
    "--warm-up",
    "--limit",
    "--rounds",
    "--format",
    "-o",
    "--output",
    "--fix",
    "--remedy",
    "--ledger",
)


def add_trial_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        type=_number,
        metavar="N",
        help="steps timed in each run (default: 30; more where 30 take less than 2 s)",
    )
    parser.add_argument(
        "--warm-up",
        type=_number,
        default=WARM_UP,
        metavar="M",
        help="steps of warm-up in each run, which are not timed (default: 5)",
    )
    parser.add_argument(
        "--limit", default=LIMIT, metavar="TIME", help="start no new run after this time (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=_number, default=5, metavar="N", help="minimum number of rounds (default: 5)")
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="run in the working directory, not in a scratch copy",
    )
    add_format(parser, FORMATS)
    add_output(parser, "write to OUT instead of the terminal")


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)
