"""`leadline run`: profile a program and its children, keep its exit status, print a summary at the end.

Imports only what starting a program needs; the summary's imports wait until the program has ended.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from leadline.capture.claim import claim, leave
from leadline.capture.config import OPTIONS_VARIABLE, OUTPUT_VARIABLE, SESSION_VARIABLE, Options
from leadline.capture.errors import ProfileError
from leadline.capture.finish import finish
from leadline.capture.messages import say
from leadline.capture.output import default_output
from leadline.capture.part import PartDirectory
from leadline.capture.providers.nvidia_files import injection_environment
from leadline.capture.records import StartedBy
from leadline.capture.supervisor import Command, ExitStatus, release_signals, run_program
from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; everything after its name is the program's own."""
    defaults = Options()
    parser.usage = "leadline run [options] (SCRIPT | -m MODULE | -- COMMAND) [ARGS ...]"
    parser.allow_abbrev = False  # an option of the program must not be taken for the beginning of one of ours
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: SCRIPT's name with .leadline)")
    parser.add_argument("--no-follow", action="store_true", help="measure the first Python process only")
    parser.add_argument("--shapes", action="store_true", help="keep the shapes and types of operator inputs")
    parser.add_argument("--no-memory", action="store_true", help="do not book tensor memory")
    parser.add_argument(
        "--nvtx", default="", metavar="DOMAINS", help="show libraries' NVTX ranges too: NCCL,cuDNN,... or all"
    )
    parser.add_argument(
        "--trace",
        metavar="steps=N|seconds=S",
        help="keep single events for timelines; ,wait=N passes over the first N (default 1)",
    )
    parser.add_argument(
        "--trace-max-events",
        type=int,
        default=defaults.trace_max_events,
        metavar="N",
        help="room (default: %(default)s)",
    )
    parser.add_argument(
        "--flush-interval",
        type=float,
        default=defaults.flush_interval_s,
        metavar="S",
        help="seconds between segments: what a killed process loses at most (default: %(default)s)",
    )
    parser.add_argument(
        "--max-nodes",
        type=int,
        default=defaults.max_nodes,
        metavar="N",
        help="call paths per thread (default: %(default)s)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, as python -m does"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="script and its arguments")


def run(arguments: argparse.Namespace) -> int:
    """Run the program under measurement; returns its exit code (or dies by its signal). 2: it was never started."""
    try:
        options = _options(arguments)
        command = _command(arguments)
        output = Path(arguments.output) if arguments.output else default_output([command.name])
        claimed = claim(output, command.typed, options, StartedBy.SUPERVISOR)
    except ProfileError as error:
        raise CommandError(str(error)) from error
    part = claimed.part
    for sentence in claimed.sentences:
        say(sentence)
    if not options.quiet:
        shown = output if output.name == part.output.name else part.output
        say(f"measuring {command.name} into {shown}{' (replaced)' if shown.exists() else ''}: {options.mode()}")
    try:
        status = run_program(command, _environment(part, options), part.beat)
    except ProfileError as error:
        part.remove()
        raise CommandError(str(error)) from error
    path = _finish(part, status)
    release_signals()
    if path is not None and not options.quiet:
        _print_summary(path)
    return status.leave()


def _options(arguments: argparse.Namespace) -> Options:
    return Options.of(
        {
            "shapes": arguments.shapes,
            "memory": not arguments.no_memory,
            "follow": not arguments.no_follow,
            "nvtx": arguments.nvtx,
            "trace": arguments.trace,
            "trace_max_events": arguments.trace_max_events,
            "flush_interval_s": arguments.flush_interval,
            "max_nodes": arguments.max_nodes,
            "quiet": arguments.quiet,
        }
    )


def _command(arguments: argparse.Namespace) -> Command:
    words: list[str] = list(arguments.program)
    if arguments.module is not None:
        words = [*arguments.module, *words]  # argparse breaks the list at a `--` among the module's own arguments
        if not words:
            raise CommandError("Say which module to run: leadline run -m MODULE.")
        return Command.module(words)
    if words and words[0] == "--":
        if len(words) == 1:
            raise CommandError("Say which command to run: leadline run -- COMMAND.")
        return Command.program(words[1:])
    if not words:
        raise CommandError("Say what to run: leadline run SCRIPT, leadline run -m MODULE, or leadline run -- COMMAND.")
    return Command.script(words)


def _environment(part: PartDirectory, options: Options) -> dict[str, str]:
    """What the program finds.

    Libraries and the driver read the injection variables whenever they please, so nobody can hide them from children:
    without following there are none, and the GPU is seen from where torch starts it.
    """
    return {
        **os.environ,
        **(injection_environment(dict(os.environ)) if options.follow else {}),
        OUTPUT_VARIABLE: str(part.output),
        SESSION_VARIABLE: str(part.folder),
        OPTIONS_VARIABLE: options.to_json(),
    }


def _finish(part: PartDirectory, status: ExitStatus) -> Path | None:
    """Make the file. Nothing here may change the program's exit status."""
    try:
        leave(part, status.record())  # the supervisor is the only root
        finished = finish(part)
    except Exception as error:
        say(f"The profile was not made ({error!r}); `leadline recover {part.directory}` may make it.")
        return None
    if finished.sentence:
        say(finished.sentence)
    return finished.path


def _print_summary(path: Path) -> None:
    try:
        from leadline.report.summary import print_summary

        print_summary(str(path))
        if any(path.parent.glob(f"{path.stem}_rank*.json")):  # the program had a training profiler
            from leadline.report.training import summarize_shared

            if (page := summarize_shared(path)) is not None:
                say(f"the training summary is {page}.")
    except Exception as error:  # the program's exit status is worth more than a summary
        say(f"Wrote {path}; its summary could not be shown ({type(error).__name__}: {error}).")
