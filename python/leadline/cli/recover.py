"""`leadline recover PART_DIR [-o OUT]`: the profile of a run that was killed, from the segments it left."""

from __future__ import annotations

import argparse
from pathlib import Path

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("part", metavar="PART_DIR", help="the directory NAME.leadline.part of the run")
    add_output(parser, "the file to write (default: NAME.leadline in the same folder)")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when a file was made, also a partial one: what is missing is among its losses."""
    from leadline.profiles import ProfileFileError
    from leadline.profiles.recover import default_output, write_recovered

    if arguments.output == "-":
        raise CommandError("A profile cannot be written to standard output; name a file with -o NAME.leadline.")
    if Path(arguments.part).is_file():
        raise CommandError(
            f"{arguments.part} is a file, not what a killed run leaves (NAME.leadline.part); "
            f"`leadline report {arguments.part}` reads a finished profile."
        )
    output = arguments.output or str(default_output(arguments.part))
    try:
        made = write_recovered(arguments.part, output, force=arguments.force)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    counts = [
        (made.complete, "complete"),
        (made.partial, "up to its last segment" if made.partial == 1 else "up to their last segments"),
        (made.missing, "lost"),
    ]
    processes = ", ".join(f"{count} {what}" for count, what in counts if count)
    print(f"Wrote {output}: processes: {processes}.")
    print(
        f"See it with: leadline report {output}    ({arguments.part} was kept; delete it when the profile is complete)"
    )
    return 0
