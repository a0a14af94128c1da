"""`leadline tool join`: what event tools found in one run, beside the times of another."""

from __future__ import annotations

import argparse
import shlex

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output, open_profile, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("memory", metavar="MEMORY", help="the profile of the run with --tool")
    parser.add_argument("timing", metavar="TIMING", help="the profile of a run of the same program without --tool")
    add_output(parser, "the file to write", required=True)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when a file was made."""
    from leadline.report.tool_join import join
    from leadline.report.tools import tool_results

    memory, timing = open_profile(arguments.memory), open_profile(arguments.timing)
    if not tool_results(memory):
        raise CommandError(f"No event tool ran in {arguments.memory}; record with leadline run --tool NAME program.py.")
    joined = join(memory, timing)
    write_file(joined.profile, arguments.output, force=arguments.force)
    share = f"{joined.matched} of {joined.rows} rows have their call path in {arguments.timing}"
    print(f"Wrote {arguments.output}: {share}.")
    print(f"See it with: leadline report {shlex.quote(str(arguments.output))} --tool all")
    return 0
