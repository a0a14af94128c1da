"""`leadline dump`: what each thread of a process does at this moment, also of one that hangs or was never measured."""

from __future__ import annotations

import argparse
import json

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process, and the form of the answer."""
    parser.add_argument("pid", type=int, metavar="PID", help="a process that runs the same version of Python as this")
    parser.add_argument("--json", action="store_true", help="the same as JSON with stable keys")
    parser.add_argument("--all", action="store_true", help="also threads that wait and run no Python")


def run(arguments: argparse.Namespace) -> int:
    """Look and print; the other process is neither stopped nor changed."""
    from leadline.attach.dump import dump, text_of
    from leadline.attach.target import AttachError

    try:
        found = dump(arguments.pid)
    except AttachError as error:
        raise CommandError(str(error)) from error
    print(json.dumps(found.as_object(), indent=2) if arguments.json else text_of(found, arguments.all).rstrip("\n"))
    return 0
