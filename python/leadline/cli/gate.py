"""`leadline gate B --baseline A`: exit code 0 passed, 1 failed, 3 no verdict."""

from __future__ import annotations

import argparse
import math

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output
from leadline.cli.formats import add_format, chosen_format

_FORMATS = ("text", "markdown", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from leadline.compare.comparable import ASPECTS

    parser.epilog = (
        "Exit code 0: within the limits. 1: beyond them; the paths are named. 3: no verdict, because the sides are not "
        "comparable or the change may be noise. 2: wrong arguments, or a file that cannot be read."
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="profiles from after the change")
    parser.add_argument(
        "--baseline", "--against", metavar="FILE", nargs="+", required=True, help="profiles from before the change"
    )
    parser.add_argument(
        "--max-slowdown", metavar="PERCENT", type=_percent, help="maximum increase of step time (default: 5%%)"
    )
    parser.add_argument(
        "--max-memory", metavar="PERCENT", type=_percent, help="maximum increase of peak and allocated bytes"
    )
    parser.add_argument("--allow", metavar="ASPECT", action="append", default=[], choices=ASPECTS,
                        help=f"accept a difference in: {', '.join(ASPECTS)}")  # fmt: skip
    add_format(parser, _FORMATS)
    add_output(parser, "write to OUT instead of the terminal")


def _percent(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        value = math.nan
    if not 0 <= value < 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage; write it like 5%")
    return value


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.compare import Limits, compare, judge
    from leadline.compare.limits import SLOWDOWN
    from leadline.report.comparison import json_comparison, markdown_verdict, text_verdict

    if not arguments.files:
        raise CommandError("The gate needs at least one profile.")
    found = compare(
        [open_profile(file) for file in arguments.baseline], [open_profile(file) for file in arguments.files]
    )
    slowdown = SLOWDOWN if arguments.max_slowdown is None else arguments.max_slowdown
    verdict = judge(found, Limits(slowdown, arguments.max_memory, tuple(arguments.allow)))
    text = text_verdict(verdict)
    chosen = chosen_format(arguments, _FORMATS)
    if chosen == "json":
        text = json_comparison(found, verdict)
    elif chosen == "markdown":
        text = markdown_verdict(found, verdict)
    write_result(text, arguments.output, force=arguments.force)
    return verdict.code
