"""`leadline join`: what event tools found in one run, beside the times of another."""

from __future__ import annotations

import argparse
from pathlib import Path

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("memory", metavar="MEMORY", help="the profile of the run with --tool")
    parser.add_argument("timing", metavar="TIMING", help="the profile of a run of the same program without")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to make")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when a file was made."""
    from leadline.cli.files import open_profile
    from leadline.profiles import ProfileFileError, write_profile
    from leadline.report.tool_join import join
    from leadline.report.tools import tool_results

    memory, timing = open_profile(arguments.memory), open_profile(arguments.timing)
    if not tool_results(memory):
        raise CommandError(f"No tool ran in {arguments.memory}; make one with: leadline run --tool NAME program.py.")
    if Path(arguments.output).resolve() in (Path(arguments.memory).resolve(), Path(arguments.timing).resolve()):
        raise CommandError("The joined profile would replace one of the two; choose another file with -o.")
    joined = join(memory, timing)
    try:
        write_profile(arguments.output, joined.profile)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    share = f"{joined.matched} of {joined.rows} rows have their call path in {arguments.timing}"
    print(f"Wrote {arguments.output}: {share}.")
    print(f"See it with: leadline report {arguments.output} --tool all")
    return 0
