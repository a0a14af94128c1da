"""The `leadline` command: finds the subcommand, imports only its module, turns every error into a sentence and an
exit code.

Constraint: this file imports the standard library only. `leadline run` starts the user's program through it, so each
import here is a delay the user pays before the first line of their own code.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from leadline.cli.errors import INTERNAL_ERROR, USAGE_ERROR, CommandError
from leadline.cli.settings import from_pyproject
from leadline.cli.subcommands import ALIASES, FIRST, HIDDEN, SUBCOMMANDS, Subcommand, overview

_BROKEN_PIPE = 128 + 13  # what a shell reports for a program that SIGPIPE ended
_INTERRUPTED = 128 + 2
_OF_STREAMS = frozenset({errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT})


class SubcommandModule(Protocol):
    """What a subcommand's file offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class _Parser(argparse.ArgumentParser):
    """What it cannot read is one sentence with what to do, in place of the whole usage."""

    def error(self, message: str) -> NoReturn:
        words = message.partition("unrecognized arguments: ")[2].split()
        advice = f"`{self.prog} --help` shows what it takes."
        if words:
            options = [word for action in self._actions for word in action.option_strings]
            what = "no option" if words[0].startswith("-") else "no argument"
            message = f"{self.prog} has {what} {words[0]}"
            advice = _meant(words[0].partition("=")[0], options) or advice
        else:
            wrong, _, choices = message.partition("invalid choice: ")[2].partition(" (choose from ")
            advice = _meant(wrong.strip("'"), [one.strip(" '") for one in choices.rstrip(")").split(",")]) or advice
            # `report: argument --top: ...`, which is printed behind the name of all
            command = self.prog.partition(" ")[2]
            message = f"{command}: {message}" if command else message
        raise CommandError(f"{message}; {advice}")


def _meant(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """`did you mean --top?`; empty where nothing known is near."""
    import difflib  # on the way to an error only: it takes longer to import than everything else here

    near = difflib.get_close_matches(word, known, n=1, cutoff=cutoff) if word else []
    return f"did you mean {near[0]}?" if near else ""


class _Unwrapped(argparse.HelpFormatter):
    """For checking options as they are added, for each of which argparse would ask how wide the terminal is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


def overview_parser() -> argparse.ArgumentParser:
    """The parser of `leadline` without a subcommand: help and version only."""
    parser = argparse.ArgumentParser(
        prog="leadline",
        usage="leadline SUBCOMMAND ...",
        description="Where the time and memory of a deep-learning program go, from your line down to the kernel.",
        epilog=f"{overview()}\n\n`leadline SUBCOMMAND --help` explains a subcommand.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    return parser


def _find(name: str) -> Subcommand:
    for one in (*SUBCOMMANDS, *HIDDEN):
        if one.name == name:
            return one
    typed = _command_for(name)
    meant = _meant(name, [*(one.name for one in SUBCOMMANDS), *ALIASES], cutoff=0.7)
    advice = f"for this file: {typed}." if typed else meant or "`leadline --help` lists the subcommands."
    raise CommandError(f"There is no subcommand {name!r}; {advice}")


def _command_for(name: str) -> str:
    """What works for a path that stands where the subcommand should."""
    from pathlib import Path

    if name.endswith(".py"):
        return f"leadline run {name}"
    if not Path(name).exists():
        return ""
    from leadline.opening.commands import command_for

    return command_for(name)


def parsed(argv: Sequence[str]) -> tuple[SubcommandModule, argparse.Namespace]:
    """The module of the subcommand that `argv` begins with, and its arguments. Raises CommandError for what is wrong in
    them, SystemExit after `--help`."""
    name, *words = [*ALIASES.get(argv[0], argv[:1]), *argv[1:]]
    found = _find(name)
    mode = found.mode(words)
    if mode is not None:
        words.remove(mode.word)
    module = cast(SubcommandModule, importlib.import_module((mode or found).module))
    parser: argparse.ArgumentParser = _Parser(
        prog=f"leadline {name} {mode.word}" if mode else f"leadline {name}",
        description=_sentence((mode or found).help),
    )
    parser.set_defaults(help_all="--help-all" in words)
    parser.formatter_class = _Unwrapped
    module.add_arguments(parser)
    if parser.formatter_class is _Unwrapped:
        parser.formatter_class = argparse.HelpFormatter
    if mode is None and found.modes:
        parser.epilog = _with_modes(parser, found)
    if mode is None:
        words = [*from_pyproject(found.name), *words]
    prepare = getattr(module, "split", None)  # of subcommands for which `--` has a meaning of its own
    return module, parser.parse_args(words if prepare is None else prepare(words))


def _dispatch(argv: Sequence[str]) -> int:
    if argv and not argv[0].startswith("-"):
        module, arguments = parsed(argv)
        if argv[0] != "run":  # which looks at its output itself, and says more
            from leadline.cli.files import check_inputs, newest_profile, use_source_roots

            if getattr(arguments, "newest", False) and arguments.file is None:
                arguments.file = newest_profile()
            check_inputs(arguments)
            use_source_roots(arguments)
        return module.run(arguments)
    if not argv:
        print(FIRST, end="", file=sys.stderr)
        return USAGE_ERROR
    parser = overview_parser()
    if parser.parse_args(argv).version:
        from leadline import __version__

        print(f"leadline {__version__}")
        return 0
    parser.print_help()
    return 0


def _with_modes(parser: argparse.ArgumentParser, found: Subcommand) -> str:
    """The end of the help of a subcommand that has other forms."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(mode.word) for mode in found.modes)
    lines = [
        "other forms, with their own options:",
        *(f"  leadline {found.name} {mode.word:<{width}}  {mode.help}" for mode in found.modes),
    ]
    return "\n".join([*([parser.epilog, ""] if parser.epilog else []), *lines])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit code. A foreseeable cause never ends in a traceback.

    `argv`: the arguments without the program's name; the process's own by default.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a character of a name is no error
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _dispatch(sys.argv[1:] if argv is None else argv)
        if sys.stdout is not None:  # None when the shell has closed it (>&-)
            sys.stdout.flush()  # a closed pipe must show here, not in the interpreter's shutdown
        return code
    except CommandError as error:
        from leadline._output import harmless

        end = "" if error.sentence.endswith((".", "?")) else "."
        print(f"leadline: {harmless(error.sentence)}{end}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _silence_stdout()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_STREAMS:
            return _failed(error)
        _silence_stdout()
        print(f"leadline: Cannot write to standard output: {error.strerror}.", file=sys.stderr)
        return USAGE_ERROR
    except MemoryError as error:
        print(
            f"leadline: This machine has too little memory for this command ({error or 'MemoryError'}).",
            file=sys.stderr,
        )
        return INTERNAL_ERROR
    except Exception as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """A fault of ours: one sentence, and the traceback in a file for whoever mends it."""
    import tempfile
    import traceback

    where = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", prefix="leadline-fault-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exception(type(error), error, error.__traceback__, file=file)
        where = f"; the traceback is in {file.name}, please report it"
    except OSError:
        pass
    name = "".join(char if char.isprintable() else "?" for char in f"{type(error).__name__}: {error}"[:200])
    print(f"leadline: Leadline has a bug here ({name}){where}.", file=sys.stderr)
    return INTERNAL_ERROR


def _silence_stdout() -> None:
    """Point stdout at /dev/null, so that the interpreter's last flush does not complain about the reader that has
    gone.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # stdout is not a real file (a test's buffer): nothing to silence
    finally:
        os.close(null)


if __name__ == "__main__":
    sys.exit(main())
