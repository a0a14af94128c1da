"""`leadline redact`: a profile without folders, names of one's own and arguments, to be shown to others."""

from __future__ import annotations

import argparse

from leadline.cli.files import add_output, open_profile, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .leadline file")
    add_output(parser, "the file to write", required=True)
    parser.add_argument("--paths", action="store_true", help="remove folders")
    parser.add_argument("--names", action="store_true", help="remove your names: code, threads, machines")
    parser.add_argument("--arguments", action="store_true", help="remove command lines, shapes and messages")


def run(arguments: argparse.Namespace) -> int:
    """Without an option, everything is taken out."""
    from leadline.report.redact import PARTS, redacted

    parts = frozenset(part for part in PARTS if getattr(arguments, part)) or frozenset(PARTS)
    profile = redacted(open_profile(arguments.file), parts)
    write_file(profile, arguments.output, force=arguments.force)
    left = [part for part in PARTS if part not in parts]
    kept = f"; {' and '.join(left)} are still in it" if left else ""
    print(f"Wrote {arguments.output} without {', '.join(sorted(parts))}{kept}.")
    return 0
