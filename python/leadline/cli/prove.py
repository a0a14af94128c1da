"""`leadline prove`: your own change, held against the program before it: faster, and still computing the same?

Exit code 0: not slower, and the same is computed. 1: slower, or something else is computed, or a program fails. 2:
wrong arguments. 3: cannot be compared.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError
from leadline.cli.left_out import split as split_program
from leadline.cli.trial_arguments import WITH_VALUE, add_trial_arguments

if TYPE_CHECKING:
    from leadline.trials.model import Trial
    from leadline.trials.variant import Variant

NO_VERDICT = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "leadline prove [options] BEFORE.py AFTER.py [ARGS ...]\n"
        "       leadline prove [options] --git A B -- (SCRIPT | COMMAND) [ARGS ...]"
    )
    parser.allow_abbrev = False
    parser.epilog = (
        "Exit code 0: not slower, and the same is computed. 1: slower, something else is computed, or a program fails. "
        "2: wrong arguments. 3: cannot be compared."
    )
    parser.add_argument(
        "--git",
        nargs=2,
        metavar=("A", "B"),
        help="compare the program in two revisions of this repository, each in its own worktree",
    )
    add_trial_arguments(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="BEFORE AFTER", help="two scripts, and arguments")


def split(words: Sequence[str]) -> list[str]:
    """What follows the programs is theirs. `--git` takes two words."""
    words = list(words)
    if "--git" in words and (place := words.index("--git")) + 2 < len(words):
        pair = words[place : place + 3]
        return [*pair, *split([*words[:place], *words[place + 3 :]])]
    return split_program(words, with_value=WITH_VALUE)


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.trial_run import prove, write

    words = list(arguments.program)
    if words[:1] == ["--"]:
        words = words[1:]
    with _of_revisions(arguments.git, words) if arguments.git else _of_scripts(words) as (before, after, program):
        trial = prove(before, after, program, arguments)
    write(trial, arguments)
    return _code(trial)


def _code(trial: Trial) -> int:
    from leadline.trials.model import CANNOT_COMPARE, FASTER, NO_DIFFERENCE

    verdict = trial.rows[1].verdict
    if verdict == CANNOT_COMPARE:
        return NO_VERDICT
    return 0 if verdict in (FASTER, NO_DIFFERENCE) else 1


Pair = Iterator["tuple[Variant, Variant, str]"]


@contextmanager
def _of_scripts(words: Sequence[str]) -> Pair:
    from leadline.capture.errors import ProfileError
    from leadline.capture.supervisor import Command
    from leadline.trials.variant import Variant

    if len(words) < 2:
        raise CommandError(
            "prove needs two programs; write leadline prove BEFORE.py AFTER.py, or leadline prove --git A B -- SCRIPT."
        )
    before, after, *rest = words
    try:
        commands = [Command.script([script, *rest]) for script in (before, after)]
    except ProfileError as error:
        raise CommandError(str(error)) from error
    folder = str(Path.cwd())
    names = (before, after) if before != after else ("before", "after")
    one, two = (Variant(name, command.argv, folder) for name, command in zip(names, commands, strict=True))
    yield one, two, shlex.join(words)


@contextmanager
def _of_revisions(revisions: Sequence[str], words: Sequence[str]) -> Pair:
    from leadline.capture.errors import ProfileError
    from leadline.capture.supervisor import Command
    from leadline.trials.model import TrialError
    from leadline.trials.revisions import worktrees
    from leadline.trials.variant import Variant

    if not words:
        raise CommandError("--git needs a program; write leadline prove --git A B -- SCRIPT.")
    try:
        with worktrees(revisions, Path.cwd()) as (first, second):
            found = []
            for name, folder in zip(revisions, (first, second), strict=True):
                if words[0].endswith(".py") and not (folder / words[0]).exists():
                    raise CommandError(f"The revision {name} has no {words[0]}.")
                is_script = words[0].endswith(".py")
                command = Command.program(words)
                argv = (*_python(), *words) if is_script else command.argv
                found.append(Variant(name, argv, str(folder), variables=_paths(folder)))
            before, after = found
            if before.name == after.name:
                before, after = (Variant(f"{one.name} ({place})", one.argv, one.folder, variables=one.variables)
                                 for place, one in (("before", before), ("after", after)))  # fmt: skip
            yield before, after, f"git {' '.join(revisions)} -- {shlex.join(words)}"
    except (TrialError, ProfileError) as error:
        raise CommandError(str(error)) from error


def _python() -> tuple[str, ...]:
    import sys

    return (sys.executable,)


def _paths(folder: Path) -> dict[str, str]:
    """Packages of the revision come before those that are installed from the working tree."""
    given = os.environ.get("PYTHONPATH", "")
    source = folder / "src"
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(source) if source.is_dir() else str(folder), given)))}
