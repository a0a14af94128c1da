"""`leadline dump`: what each thread of a process does at this moment, also of one that hangs or was never measured."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError
from leadline.cli.formats import add_format, chosen_format

if TYPE_CHECKING:
    from leadline.attach.native_stack import Names
    from leadline.profiles.flight import Flight

_COLLECTIVES = 4
_FORMATS = ("text", "json")
"""How many of the last ones the text shows; JSON has all that are kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process, and the form of the answer."""
    parser.add_argument(
        "pid", type=int, nargs="?", metavar="PID", help="a process with the same version of Python as this command"
    )
    parser.add_argument(
        "--job",
        action="append",
        default=[],
        metavar="DIR",
        help="show all ranks of the job whose profiles are in this folder",
    )
    add_format(parser, _FORMATS, old=("json",))
    parser.add_argument(
        "--native",
        default="",
        choices=("yes", "all"),
        help="show C and C++ frames of threads that wait; =all: also those of the interpreter",
    )
    parser.add_argument("--all", action="store_true", help="also show threads that wait and run no Python")


def split(words: Sequence[str]) -> list[str]:
    """`--native` may stand without a value."""
    return ["--native=yes" if word == "--native" else word for word in words]


def _names(pid: int) -> Names:
    """Names functions by the symbol tables of the files, as the process sees them."""
    import numpy as np

    from leadline.profiles.demangle import demangler
    from leadline.profiles.elf import ElfError, ElfFile
    from leadline.profiles.names import readable

    demangle = demangler()

    def names(file: str, addresses: Sequence[int]) -> Sequence[str]:
        try:
            elf = ElfFile(Path(f"/proc/{pid}/root") / file.lstrip("/"))
        except (ElfError, OSError):
            return [""] * len(addresses)
        try:
            found = elf.functions_at(np.array(addresses, np.uint64))
            return [readable(demangle(name)) if name else "" for _, name in found]
        except ElfError:
            return [""] * len(addresses)
        finally:
            elf.close()

    return names


def run(arguments: argparse.Namespace) -> int:
    """Look and print; the other process is neither stopped nor changed."""
    from leadline.attach.dump import dump, text_of
    from leadline.attach.target import AttachError

    if bool(arguments.job) == (arguments.pid is not None):
        raise CommandError(
            "dump needs a process; write leadline dump PID, or leadline dump --job DIR for all ranks of a job."
        )
    if arguments.job:
        return _job(arguments)
    try:
        names = _names(arguments.pid) if arguments.native else None
        found = dump(arguments.pid, names, arguments.native == "all")
        flight = _flight(arguments.pid)
    except AttachError as error:
        raise CommandError(str(error)) from error
    if chosen_format(arguments, _FORMATS) == "json":
        from leadline.cli.job_dump import flight_object

        print(json.dumps({**found.as_object(), **flight_object(flight)}, indent=2))
    else:
        print("\n".join([text_of(found, arguments.all, bool(arguments.native)).rstrip("\n"), *_collectives(flight)]))
    return 0


def _flight(pid: int) -> Flight | None:
    """What the process has recorded of its collectives last; None where it began none, or is not measured."""
    from leadline.attach.recorder import recorders
    from leadline.profiles import ProfileFileError
    from leadline.profiles.flight import parse_flight

    flights = []
    for one, again in zip(recorders(pid), recorders(pid), strict=False):
        with contextlib.suppress(ProfileFileError):  # a file of that name that is none
            flights.append(parse_flight(one, again, "the recorder", here=True))
    return max(flights, key=lambda one: one.last.begin_ns if one.last else 0, default=None)


def _collectives(flight: Flight | None) -> list[str]:
    from leadline.cli.job_dump import collective_text
    from leadline.report.source import visible

    if flight is None or flight.last is None:
        return []
    begun = sum(group.begun for group in flight.groups)
    head = f"collectives ({begun} begun, the last {_COLLECTIVES})" if begun > _COLLECTIVES else "collectives"
    return ["", head, *(f"    {visible(collective_text(one))}" for one in flight.collectives[-_COLLECTIVES:])]


def _job(arguments: argparse.Namespace) -> int:
    from leadline.cli.job_dump import inspect_job, job_text
    from leadline.profiles import ProfileFileError

    try:
        job = inspect_job(arguments.job)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    print(json.dumps(job.as_object(), indent=2) if chosen_format(arguments, _FORMATS) == "json" else job_text(job))
    return 0
