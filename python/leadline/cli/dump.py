"""`leadline dump`: what each thread of a process does at this moment, also of one that hangs or was never measured."""

from __future__ import annotations

import argparse
import json

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process, and the form of the answer."""
    parser.add_argument(
        "pid", type=int, nargs="?", metavar="PID", help="a process that runs the same version of Python as this"
    )
    parser.add_argument(
        "--job", action="append", default=[], metavar="DIR", help="all ranks that leave their profiles in this folder"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON with stable keys")
    parser.add_argument("--all", action="store_true", help="also threads that wait and run no Python")


def run(arguments: argparse.Namespace) -> int:
    """Look and print; the other process is neither stopped nor changed."""
    from leadline.attach.dump import dump, text_of
    from leadline.attach.target import AttachError

    if bool(arguments.job) == (arguments.pid is not None):
        raise CommandError("Say what to look at: leadline dump PID, or leadline dump --job DIR for all ranks of a job.")
    if arguments.job:
        return _job(arguments)
    try:
        found = dump(arguments.pid)
    except AttachError as error:
        raise CommandError(str(error)) from error
    print(json.dumps(found.as_object(), indent=2) if arguments.json else text_of(found, arguments.all).rstrip("\n"))
    return 0


def _job(arguments: argparse.Namespace) -> int:
    from leadline.cli.job_dump import job_text, look_at_job
    from leadline.profiles import ProfileFileError

    try:
        job = look_at_job(arguments.job)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    print(json.dumps(job.as_object(), indent=2) if arguments.json else job_text(job))
    return 0
