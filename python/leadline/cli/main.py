"""The `leadline` command: finds the verb, imports only that verb's module, turns every error into a sentence and an
exit code.

Constraint: this file imports the standard library only. `leadline run` starts the user's program through it, so each
import here is a delay the user pays before the first line of their own code.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from leadline.cli.errors import USAGE_ERROR, CommandError

_BROKEN_PIPE = 128 + 13  # what a shell reports for a program that SIGPIPE ended
_INTERRUPTED = 128 + 2


@dataclass(frozen=True)
class Verb:
    """A verb by name; its module is imported when it is used."""

    name: str
    module: str
    help: str


class VerbModule(Protocol):
    """What a verb's file offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


VERBS: tuple[Verb, ...] = (
    Verb("run", "leadline.cli.run", "run a Python program and profile it and its children"),
    Verb("report", "leadline.cli.report", "show a profile as text, markdown, JSON or one HTML file"),
    Verb("view", "leadline.cli.view", "look at a profile, or compare two, in the browser or (--tui) in this terminal"),
    Verb("analyze", "leadline.cli.analyze", "name the problems a profile shows, with evidence, remedy and gain"),
    Verb("summary", "leadline.cli.summary", "a training run's page for the experiment log, of a profile or a trace"),
    Verb("query", "leadline.cli.query", "ask a profile in one line: which paths, what they cost, grouped and sorted"),
    Verb("sql", "leadline.cli.sql", "ask a profile in SQL, over documented DuckDB views"),
    Verb("diff", "leadline.cli.diff", "compare profiles from before and after a change, per step and path"),
    Verb("gate", "leadline.cli.gate", "fail when profiles are slower or larger than a baseline"),
    Verb("merge", "leadline.cli.merge", "fold the profiles of a job's ranks into one, with statistics over ranks"),
    Verb("join", "leadline.cli.join", "put what event tools found beside the times of a run without them"),
    Verb("top", "leadline.cli.top", "look at a running program: hottest paths, steps, memory and queue now"),
    Verb("watch", "leadline.cli.watch", "look at the ranks of a running job: who is late, who is silent"),
    Verb("info", "leadline.cli.info", "say what is in a profile"),
    Verb("redact", "leadline.cli.redact", "take paths, names and arguments out of a profile, to show it to others"),
    Verb(
        "timeline", "leadline.cli.timeline", "what each thread did in each step of the trace window, and why it waited"
    ),
    Verb(
        "stats", "leadline.cli.stats", "durations and latencies in the trace window, by operator, kernel, path or stage"
    ),
    Verb("clock-sync", "leadline.cli.clock_sync", "say how far the clocks of two machines are apart, by messages"),
    Verb("import", "leadline.cli.import_", "make a profile of a trace that another profiler recorded"),
    Verb("export", "leadline.cli.export", "write a profile for another viewer"),
    Verb("mcp", "leadline.cli.mcp", "answer an agent, over the Model Context Protocol on stdin and stdout"),
    Verb("whatif", "leadline.cli.whatif", "predict what a change would gain, from one trace window"),
    Verb("tools", "leadline.cli.tools", "list event tools and where their events come from"),
    Verb(
        "uvm", "leadline.cli.uvm", "plan managed memory for a device that is too small, and run a program by the plan"
    ),
    Verb("dump", "leadline.cli.dump", "what each thread of a running process does now, also of one that hangs"),
    Verb("attach", "leadline.cli.attach", "measure a process that runs already, for a while"),
    Verb("detach", "leadline.cli.detach", "end what attach began, before its time"),
    Verb("symbolize", "leadline.cli.symbolize", "name the native frames of a profile, in the file itself"),
    Verb("doctor", "leadline.cli.doctor", "say what can be measured here, and how to get what cannot"),
    Verb("recover", "leadline.cli.recover", "make a profile from what a killed run left behind"),
    Verb("demo", "leadline.cli.demo", "profile the bundled training program"),
)


def overview_parser() -> argparse.ArgumentParser:
    """The parser of `leadline` without a verb: help and version only."""
    width = max(len(verb.name) for verb in VERBS)
    verbs = "\n".join(f"  {verb.name:<{width}}  {verb.help}" for verb in VERBS)
    parser = argparse.ArgumentParser(
        prog="leadline",
        usage="leadline VERB ...",
        description="Where the time and memory of a deep-learning program go, from your line down to the kernel.",
        epilog=f"verbs:\n{verbs}\n\n`leadline VERB --help` explains a verb.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    return parser


def _find_verb(name: str) -> Verb:
    for verb in VERBS:
        if verb.name == name:
            return verb
    known = ", ".join(verb.name for verb in VERBS)
    raise CommandError(f"There is no verb {name!r}; the verbs are {known}.")


def _dispatch(argv: Sequence[str]) -> int:
    if argv and not argv[0].startswith("-"):
        verb = _find_verb(argv[0])
        module = cast(VerbModule, importlib.import_module(verb.module))
        parser = argparse.ArgumentParser(prog=f"leadline {verb.name}", description=_sentence(verb.help))
        module.add_arguments(parser)
        words = list(argv[1:])
        prepare = getattr(module, "split", None)  # of verbs for which `--` has a meaning of its own
        return module.run(parser.parse_args(words if prepare is None else prepare(words)))
    parser = overview_parser()
    if parser.parse_args(argv).version:
        from leadline import __version__

        print(f"leadline {__version__}")
        return 0
    parser.print_help(sys.stdout if argv else sys.stderr)
    return 0 if argv else USAGE_ERROR


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code and raises nothing a user would see as a traceback for a foreseeable cause.

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
        print(f"leadline: {error.sentence}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _silence_stdout()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED


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
