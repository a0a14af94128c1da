"""`leadline watch DIR`: the ranks of a job while it runs: who is late, who is silent, who did not arrive."""

from __future__ import annotations

import argparse
import sys
import time

from leadline.cli.durations import duration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="DIR", nargs="+", help="the folder with the profiles of the job's ranks")
    parser.add_argument(
        "--every", type=duration, default=10.0, metavar="TIME", help="time between two screens (default: 10s)"
    )
    parser.add_argument("--once", action="store_true", help="print one screen and exit (default without a terminal)")
    parser.add_argument(
        "--history", action="store_true", help="show which rank was late when, from rolled files (run --roll)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Until interrupted. Exit code 2 with a sentence when there is nothing to watch on the first look."""
    from leadline.cli.errors import CommandError
    from leadline.distributed.merge import merge_files
    from leadline.profiles import ProfileFileError
    from leadline.report.source import visible
    from leadline.report.watch import JobReading, watch_text

    if arguments.history:
        return _history(arguments.files)
    once = arguments.once or not sys.stdout.isatty()
    before: JobReading | None = None
    while True:
        began = time.monotonic()
        try:
            merged = merge_files(arguments.files)
            now = JobReading.at(merged.profile, time.time_ns())
            text = watch_text(now, before)
            before = now
        except ProfileFileError as error:
            if before is None:
                raise CommandError(str(error)) from error
            text = visible(str(error))  # the job has ended and its files are being made: the next look will tell
        print(text if once else f"\x1b[H\x1b[2J{text}", flush=True)
        if once:
            return 0
        time.sleep(max(arguments.every - (time.monotonic() - began), 0.5))


def _history(files: list[str]) -> int:
    from leadline.cli.errors import CommandError
    from leadline.distributed.stretches import stretches
    from leadline.profiles import ProfileFileError
    from leadline.report.lateness import lateness, lateness_text

    try:
        late, looked = lateness((one.start_ns, one.end_ns, one.profile) for one in stretches(files))
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    print(lateness_text(late, looked))
    return 0
