"""`leadline timeline --stats`: how long operators, kernels, call paths or stages took, and how late they began."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output
from leadline.cli.formats import add_format, chosen_format

_KEYS = ("operator", "kernel", "node", "stage")
_DEFAULT_ROWS = 30
_FORMATS = ("text", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_newest(parser)
    parser.add_argument("--by", choices=_KEYS, default="operator", help="what a row is (default: %(default)s)")
    add_format(parser, _FORMATS, old=("csv",))
    parser.add_argument("--top", type=int, default=_DEFAULT_ROWS, metavar="N", help="rows (default: %(default)s)")
    add_output(parser, "the file to write (default: stdout)")


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.report.csv_text import csv_text
    from leadline.report.source import visible
    from leadline.trace.statistics import statistics
    from leadline.units import duration

    profile = open_profile(arguments.file)
    if not len(profile.events["start_ns"]):
        raise CommandError(f"{arguments.file} holds no trace window; record one with `leadline run --trace steps=3`.")
    rows = statistics(profile, arguments.by)
    if not rows:
        raise CommandError(f"The trace window has no {arguments.by}; --by takes {', '.join(_KEYS)}.")
    if chosen_format(arguments, _FORMATS) == "csv":
        header = ("occurrences", "total_ns", "mean_ns", "deviation_ns", "min_ns", "max_ns")
        made: list[Sequence[object]] = [(arguments.by, *header, *(f"latency_{name}" for name in header))]
        for row in rows:
            spreads = [
                (one.count, one.total, f"{one.mean:.1f}", f"{one.deviation:.1f}", one.low, one.high)
                if one.count
                else ("",) * 6
                for one in (row.duration, row.latency)
            ]
            made.append((row.name, *spreads[0], *spreads[1]))
        write_result(csv_text(made), arguments.output, force=arguments.force)
        return 0
    lines = [f"{'times':>7}  {'total':>9}  {'mean':>9}  {'deviation':>9}  {'max':>9}  {'late':>9}  {arguments.by}"]
    for row in rows[: arguments.top]:
        one = row.duration
        late = duration(row.latency.mean) if row.latency.count else ""
        times = (duration(value) for value in (one.total, one.mean, one.deviation, one.high))
        cells = "  ".join(f"{cell:>9}" for cell in (*times, late))
        lines.append(f"{one.count:>7}  {cells}  {visible(row.name)}")
    if len(rows) > arguments.top:
        lines.append(f"{len(rows) - arguments.top} more; --top {len(rows)} shows all.")
    lines.append("late: mean of begin minus the end of the last input, where inputs are known")
    write_result("\n".join(lines) + "\n", arguments.output, force=arguments.force)
    return 0
