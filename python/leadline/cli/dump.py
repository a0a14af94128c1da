"""`leadline dump`: what each thread of a process does at this moment, also of one that hangs or was never measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError

if TYPE_CHECKING:
    from leadline.attach.native_stack import Names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process, and the form of the answer."""
    parser.add_argument(
        "pid", type=int, nargs="?", metavar="PID", help="a process that runs the same version of Python as this"
    )
    parser.add_argument(
        "--job", action="append", default=[], metavar="DIR", help="all ranks that leave their profiles in this folder"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON with stable keys")
    parser.add_argument(
        "--native",
        default="",
        choices=("yes", "all"),
        help="native frames (C, C++) of threads that wait; =all: also those of the interpreter",
    )
    parser.add_argument("--all", action="store_true", help="also threads that wait and run no Python")


def split(words: Sequence[str]) -> list[str]:
    """`--native` may stand without a value."""
    return ["--native=yes" if word == "--native" else word for word in words]


def _names(pid: int) -> Names:
    """Names functions by the symbol tables of the files, as the process sees them."""
    import numpy as np

    from leadline.profiles.elf import ElfError, ElfFile
    from leadline.profiles.symbols import demangler, readable

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
        raise CommandError("Say what to look at: leadline dump PID, or leadline dump --job DIR for all ranks of a job.")
    if arguments.job:
        return _job(arguments)
    try:
        names = _names(arguments.pid) if arguments.native else None
        found = dump(arguments.pid, names, arguments.native == "all")
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
