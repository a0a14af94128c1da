"""`leadline redact`: a profile without folders, names of one's own and arguments, to be shown to others."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .leadline file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to make")
    parser.add_argument("--paths", action="store_true", help="take folders out")
    parser.add_argument("--names", action="store_true", help="take names of one's own out: code, threads, machines")
    parser.add_argument("--arguments", action="store_true", help="take command lines, shapes and sentences out")


def run(arguments: argparse.Namespace) -> int:
    """Without an option, everything is taken out."""
    from pathlib import Path

    from leadline.cli.files import open_profile
    from leadline.profiles import ProfileFileError, write_profile
    from leadline.report.redact import PARTS, redacted

    if Path(arguments.output).resolve() == Path(arguments.file).resolve():
        raise CommandError("The redacted profile would replace the whole one; choose another file with -o.")
    parts = frozenset(part for part in PARTS if getattr(arguments, part)) or frozenset(PARTS)
    profile = redacted(open_profile(arguments.file), parts)
    try:
        write_profile(arguments.output, profile)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    left = [part for part in PARTS if part not in parts]
    kept = f"; {' and '.join(left)} are still in it" if left else ""
    print(f"Wrote {arguments.output} without {', '.join(sorted(parts))}{kept}.")
    return 0
