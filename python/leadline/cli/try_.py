"""`leadline try`: remedies measured on the user's own program, in runs that take turns; a table with a verdict each.

Exit code 0: compared. 1: the program fails, or has no steps that could be compared. 2: wrong arguments. 130: Ctrl-C
before the first round was done.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError
from leadline.cli.left_out import split as split_program
from leadline.cli.trial_arguments import WITH_VALUE, add_trial_arguments

if TYPE_CHECKING:
    from leadline.capture.supervisor import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "leadline try [options] (SCRIPT | -m MODULE | -c CODE | -- COMMAND | FILE.leadline) [ARGS ...]"
    parser.allow_abbrev = False
    parser.epilog = "Exit code 0: compared. 1: the program fails or has no steps to compare. 2: wrong arguments."
    parser.add_argument(
        "--fix",
        dest="remedy",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="try this fix, such as fused_optimizer, workers=4 or a file mine.py; may be repeated "
        "(default: what a profile of the first run suggests)",
    )
    parser.add_argument("--remedy", action="append", help=argparse.SUPPRESS)  # what it was called
    parser.add_argument("--list", action="store_true", help="list the fixes")
    parser.add_argument("--no-predict", action="store_true", help="do not profile the first run, and predict nothing")
    parser.add_argument("--no-ledger", action="store_true", help="do not write leadline-ledger.jsonl")
    add_trial_arguments(parser)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="run a line of code")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="script and its arguments")


def split(words: Sequence[str]) -> list[str]:
    """What follows the program is its own."""
    return split_program(words, with_value=WITH_VALUE)


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.trial_run import try_remedies, write
    from leadline.remedies.base import RemedyError
    from leadline.trials.suggest import asked

    if arguments.list:
        sys.stdout.write(_listed())
        return 0
    try:
        remedies = asked(arguments.remedy)
    except RemedyError as error:
        raise CommandError(str(error)) from error
    command, profile, folder = _command(arguments)
    trial = try_remedies(command, folder, remedies, profile, arguments)
    write(trial, arguments)
    return 0 if trial.complete or trial.rounds else 130


def _listed() -> str:
    from leadline.remedies.registry import shipped

    kinds = shipped()
    titles = [
        f"{one.name}={one.needs or '|'.join(one.choices)}"
        if one.needs or one.choices
        else f"{one.name}[={one.may_be}]" * bool(one.may_be) or one.name
        for one in kinds
    ]
    width = max(map(len, titles))
    return "".join(f"{title:<{width}}   {one.changes}\n" for title, one in zip(titles, kinds, strict=True))


def _command(arguments: argparse.Namespace) -> tuple[Command, Path | None, str]:
    """The program, the profile that suggests remedies (None: the first run makes one), the directory it runs in."""
    from leadline.capture.errors import ProfileError
    from leadline.cli.run import program_of

    words = list(arguments.program)
    if arguments.module is None and arguments.code is None and len(words) == 1 and words[0].endswith(".leadline"):
        return _of_profile(Path(words[0]))
    if not words and arguments.module is None and arguments.code is None:
        raise CommandError(
            "try needs a program; write leadline try SCRIPT, leadline try -m MODULE, or leadline try FILE.leadline."
        )
    try:
        command = program_of(arguments)
    except ProfileError as error:
        raise CommandError(str(error)) from error
    return command, None, str(Path.cwd())


def _of_profile(path: Path) -> tuple[Command, Path, str]:
    """The command that a profile was made of."""
    from leadline.capture.supervisor import Command
    from leadline.cli.files import open_profile

    program = open_profile(str(path)).meta.get("program", {})
    typed = [str(word) for word in program.get("argv") or ()]
    folder = str(program.get("cwd") or "")
    if not typed:
        raise CommandError(f"{path} does not name its program; write leadline try SCRIPT ARGS.")
    if folder and not Path(folder).is_dir():
        raise CommandError(f"{path} was made in {folder}, which does not exist here; write leadline try SCRIPT ARGS.")
    if typed[0] == "-m":
        command = Command.module(typed[1:])
    elif typed[0] == "-c":
        command = Command.code(typed[1:])
    elif typed[0].endswith(".py"):
        if not (Path(folder or ".") / typed[0]).exists():
            raise CommandError(
                f"{path} was made from {shlex.join(typed)}, which no longer exists; write leadline try SCRIPT ARGS."
            )
        command = Command(tuple(typed), (sys.executable, *typed))
    else:
        command = Command.program(typed)
    return command, path, folder or str(path.resolve().parent)
