"""Options that `leadline try` and `leadline prove` share."""

from __future__ import annotations

import argparse

STEPS, WARM_UP, LIMIT = 30, 5, "10min"
WITH_VALUE = ("--steps", "--warm-up", "--limit", "--rounds", "--format", "-o", "--output", "--remedy", "--ledger")


def add_trial_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=_number, default=STEPS, metavar="N", help="steps timed in each run (default: 30)"
    )
    parser.add_argument(
        "--warm-up", type=_number, default=WARM_UP, metavar="M", help="steps before these that are not (default: 5)"
    )
    parser.add_argument(
        "--limit", default=LIMIT, metavar="TIME", help="time after which no new run begins (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=_number, default=5, metavar="N", help="least number of rounds (default: 5)")
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="let the runs write where the program writes, without a scratch directory",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json, on stdout")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of the terminal")
    parser.add_argument("--force", action="store_true", help="replace FILE")


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)
