"""`leadline run`: profile a program and its children, keep its exit status, print a summary at the end.

Imports only what starting a program needs; the summary's imports wait until the program has ended.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline._output import OutputError, check_input
from leadline.capture.claim import claim, leave
from leadline.capture.config import (
    CPU_SAMPLE_HZ,
    LONG_RUN_S,
    OPTIONS_VARIABLE,
    OUTPUT_VARIABLE,
    SESSION_VARIABLE,
    USUAL_BUDGET,
    USUAL_SAMPLE_HZ,
    USUAL_WAIT_HZ,
    WAIT_HZ,
    Options,
)
from leadline.capture.durations import is_duration, seconds
from leadline.capture.endpoint_file import ENDPOINT_HELP, port_file, remove_stale
from leadline.capture.errors import ProfileError
from leadline.capture.finish import finish
from leadline.capture.messages import say
from leadline.capture.output import default_output
from leadline.capture.part import PartDirectory
from leadline.capture.providers.accelerator.files import audit_environment
from leadline.capture.providers.amd.files import tool_environment
from leadline.capture.providers.nvidia.files import injection_environment
from leadline.capture.records import StartedBy
from leadline.capture.supervisor import Command, ExitStatus, release_signals
from leadline.cli.accelerator_arguments import add_accelerator_arguments
from leadline.cli.after_run import attach_kernel, complete, print_the_summary
from leadline.cli.durations import duration
from leadline.cli.errors import CommandError
from leadline.cli.files import runnable
from leadline.cli.instruction_arguments import add_instruction_arguments, instruction_options
from leadline.cli.left_out import split as split  # `main` prepares the words with it
from leadline.cli.more_options import MoreOptions
from leadline.cli.observed import kept_name, observed_run, run_anyway
from leadline.cli.percent import percent
from leadline.cli.rates import limit, samples
from leadline.cli.tool_arguments import add_tool_arguments, launches_looked_at, system_kernel_level, tool_options

if TYPE_CHECKING:
    from leadline.capture.kernel.recorder import KernelRecorder
    from leadline.capture.rolling import Keep, Rolling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; everything after its name is the program's own."""
    defaults = Options()
    parser.usage = "leadline run [options] (SCRIPT | -m MODULE | -c CODE | -- COMMAND) [ARGS ...]"
    parser.allow_abbrev = False  # an option of the program must not be taken for the beginning of one of ours
    more = MoreOptions(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile to FILE (default: SCRIPT.leadline)")
    parser.add_argument("--shapes", action="store_true", help="record shapes and types of operator inputs")
    parser.add_argument(
        "--trace",
        metavar="steps=N|seconds=S",
        help="also record single events, for timelines and `leadline whatif`; ,wait=N skips N (default 1)",
    )
    parser.add_argument(
        "--cpu-sample",
        type=float,
        default=-1.0,
        metavar="HZ",
        help=f"CPU sampling rate of every thread (default: {USUAL_SAMPLE_HZ:g}; without HZ: {CPU_SAMPLE_HZ:g})",
    )
    parser.add_argument("--no-cpu-sample", action="store_true", help="take no CPU samples")
    parser.add_argument(
        "--native",
        default="",
        choices=("yes", "all"),
        help="record C and C++ frames in CPU samples; =all: also those of the interpreter",
    )
    parser.add_argument(
        "--budget",
        default="",
        metavar="PERCENT",
        help="limit of the overhead, such as 1%%: pause data sources while measuring takes a larger share of the run "
        f"(default: {USUAL_BUDGET:g}%% of what follows the first {LONG_RUN_S / 60:g} minutes; none: no limit; with "
        "--instructions also the limit of sampling, 2%% by default)",
    )
    parser.add_argument(
        "--duty",
        default="",
        metavar="PERCENT",
        help="measure only this share of the steps, such as 20%%, in random blocks",
    )
    parser.add_argument(
        "--keep-old", action="store_true", help="keep an older profile of that name as NAME.1.leadline, NAME.2.leadline"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, as python -m does"
    )
    parser.add_argument(
        "-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="run a line of code, as python -c does"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script and its arguments")
    more.add("--plan", action="store_true", help="print the maximum cost of the run on this machine, and run nothing")
    more.add("--no-follow", action="store_true", help="measure the first Python process only, not its children")
    more.add("--no-memory", action="store_true", help="do not record tensor memory")
    more.add(
        "--wait",
        type=float,
        default=0.0,
        metavar="HZ",
        help=f"sampling rate of off-CPU waits of every thread (default: {USUAL_WAIT_HZ:g}; without HZ: {WAIT_HZ:g})",
    )
    more.add(
        "--counter",
        action="append",
        default=[],
        metavar="NAME",
        help="count a perf event where CPU samples are taken: page-faults, cycles; may be repeated",
    )
    more.add(
        "--os-trace",
        dest="kernel",
        action="append",
        default=[],
        metavar="LEVEL",
        help="with --trace: record events of the Linux kernel: sched, syscalls, io or faults; each level includes "
        "those before it",
    )
    more.old("--kernel", dest="kernel", action="append")
    more.add(
        "--nvtx",
        default="",
        metavar="DOMAINS",
        help="also show NVTX ranges of libraries: NCCL,cuDNN,... or all; --nvtx=-TSL leaves out XLA's",
    )
    more.add(
        "--trace-max-events",
        type=int,
        default=defaults.trace_max_events,
        metavar="N",
        help="maximum number of events in the trace window (default: %(default)s)",
    )
    more.add(
        "--max-nodes",
        type=int,
        default=defaults.max_nodes,
        metavar="N",
        help="maximum number of call paths of a thread (default: %(default)s)",
    )
    more.add(
        "--flush-interval",
        type=duration,
        default=defaults.flush_interval_s,
        metavar="TIME",
        help="time between writes to disk; a killed process loses at most this much (default: %(default)gs)",
    )
    more.add(
        "--hang-after",
        type=duration,
        default=defaults.hang_after_s,
        metavar="TIME",
        help="write hang_*.txt when ranks have waited for each other this long; 0: never (default: %(default)gs)",
    )
    more.add(
        "--roll",
        dest="every",
        action="append",
        default=[],
        metavar="TIME",
        help="write a new file every TIME, such as 10min (see --keep)",
    )
    more.old("--every", dest="every", action="append")
    more.add(
        "--keep",
        default="",
        metavar="AGE|N",
        help="with --roll: keep files up to this age (24h), this number, or both (24h,100) (default: all)",
    )
    more.add("--endpoint", default="", metavar="FILE", help=ENDPOINT_HELP)
    add_accelerator_arguments(more)
    add_instruction_arguments(more)
    add_tool_arguments(more)


def run(arguments: argparse.Namespace) -> int:
    """Run the program under measurement; returns its exit code (or dies by its signal). 2: it was never started."""
    if arguments.plan:
        from leadline.cli.plan import print_plan

        print_plan(lambda: _options(arguments))
        return 0
    status, path, rolling = measure(arguments, lambda: _options(arguments))
    if path is not None and not arguments.quiet:
        print_the_summary(path)
        if rolling is not None and rolling.sentence():
            say(rolling.sentence())
    return status.leave()


def measure(
    arguments: argparse.Namespace,
    options_of: Callable[[], Options],
    look: Callable[[PartDirectory], None] | None = None,
) -> tuple[ExitStatus, Path | None, Rolling | None]:
    """Run the program and make its file: how it ended, the file (None where there is none), what rolled it. `look` is
    called while it runs, twice a second. Raises CommandError where the program was never started."""
    try:
        options = options_of()
        _check_counters(options)
        command = program_of(arguments)
        every_s, keep = _rolling(arguments, options)
        output = Path(arguments.output) if arguments.output else default_output([command.name])
        _check_words(output, command.typed)
        claimed = claim(output, command.typed, options, StartedBy.SUPERVISOR)
        kept = kept_name(claimed.part) if getattr(arguments, "keep_old", False) and not every_s else None
    except (ProfileError, OutputError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:  # the machine is out of something
        run_anyway(program_of(arguments), error)
    part = claimed.part
    for sentence in claimed.sentences:
        say(sentence)
    if not options.quiet:
        shown = output if output.name == part.output.name else part.output
        if every_s:
            shown = shown.with_name(f"{shown.stem}_*{shown.suffix}")
        what = f" (a new file every {every_s:g} s)" if every_s else ""
        say(f"measuring {command.name} into {shown}{what}: {options.mode()}")
        if kept is not None:
            say(f"keeping the older profile as {shown.with_name(kept.name)}.")
        elif shown.exists():
            say(f"this run replaces the older profile {shown}; --keep-old keeps it.")
    recorder = _kernel_recorder(options, part)
    rolling = None
    if keep is not None:
        from leadline.capture.rolling import Rolling

        rolling = Rolling(part, every_s, keep, say)
    try:
        status = observed_run(command, part, _environment(part, options), recorder, rolling, look)
    except Exception as error:  # nothing was started
        with contextlib.suppress(OSError):
            part.remove()
        if recorder is not None:
            recorder.discard()
        if isinstance(error, ProfileError):
            raise CommandError(str(error)) from error
        run_anyway(command, error)
    remove_stale(options.endpoint)
    recording = recorder.finish() if recorder is not None else None
    path = _finish(part, status, rolling)
    if path is None and kept is not None:  # the older profile has its own name still
        kept.unlink(missing_ok=True)
    if recorder is not None and recording is not None:
        if path is not None:
            attach_kernel(path, recording)
        recorder.discard()
    release_signals()
    if path is not None:
        complete(path, options)
    return status, path, rolling


def _check_words(output: Path, words: Sequence[str]) -> None:
    """Raise OutputError where the program is told to read what would be replaced."""
    if output.is_file():
        check_input(output, (part for word in words for part in {word, word.partition("=")[2]} if part))


def _options(arguments: argparse.Namespace) -> Options:
    return Options.of(
        {
            "shapes": arguments.shapes,
            "memory": not arguments.no_memory,
            "follow": not arguments.no_follow,
            "nvtx": arguments.nvtx,
            "trace": arguments.trace,
            "kernel": system_kernel_level(arguments.kernel),
            "trace_max_events": arguments.trace_max_events,
            "flush_interval_s": arguments.flush_interval,
            "hang_after_s": arguments.hang_after,
            "max_nodes": arguments.max_nodes,
            "quiet": arguments.quiet,
            **samples(arguments),
            **tool_options(arguments, os.environ),
            "counters": arguments.counter,
            "accelerators": arguments.accelerator,
            "native": arguments.native,
            **instruction_options(arguments),
            **limit(arguments),
            "duty": percent("--duty", arguments.duty, "20%"),
            "endpoint": port_file(arguments.endpoint),
        }
    )


def _rolling(arguments: argparse.Namespace, options: Options) -> tuple[float, Keep | None]:
    """Seconds between files, and which of them stay; 0 and None for one file."""
    times = [one for one in arguments.every if is_duration(one)]
    launches_looked_at(arguments.every)
    if not times:
        if arguments.keep:
            raise CommandError("--keep works on rolled files; add --roll 10min.")
        return 0.0, None
    every_s = seconds(times[-1], "--roll")
    if every_s < options.flush_interval_s:
        raise CommandError(
            f"--roll {times[-1]} is shorter than the flush interval; add --flush-interval {every_s / 2:g}s."
        )
    if options.kernel:
        raise CommandError("--os-trace cannot be combined with --roll; leave out one of them.")
    from leadline.capture.rolling import Keep

    return every_s, Keep.parse(arguments.keep)


def _check_counters(options: Options) -> None:
    """A run without what was asked for would be for nothing; the first that cannot be counted says so."""
    if not options.counters:
        return
    from leadline.capture.native import load_native

    for sentence in load_native().refused_counters(list(options.counters)):
        raise ProfileError(sentence)


def program_of(arguments: argparse.Namespace) -> Command:
    """What SCRIPT, -m, -c or -- name. Raises CommandError and ProfileError."""
    words: list[str] = list(arguments.program)
    if arguments.code is not None:
        if not (words := [*arguments.code, *words]):
            raise CommandError("-c needs code; write leadline run -c CODE.")
        return Command.code(words)
    if arguments.module is not None:
        words = [*arguments.module, *words]  # argparse breaks the list at a `--` among the module's own arguments
        if not words:
            raise CommandError("-m needs a module; write leadline run -m MODULE.")
        return Command.module(words)
    if words and words[0] == "--":
        if len(words) == 1:
            raise CommandError("-- needs a command; write leadline run -- COMMAND.")
        return Command.program(words[1:])
    if not words:
        raise CommandError(
            "run needs a program; write leadline run SCRIPT, leadline run -m MODULE, or leadline run -- COMMAND."
        )
    return Command.script(runnable(words))


def _environment(part: PartDirectory, options: Options) -> dict[str, str]:
    """What the program finds.

    Libraries and the driver read the injection variables whenever they please, so nobody can hide them from children:
    without following there are none, and the GPU is seen from where torch starts it.
    """
    return {
        **os.environ,
        **(injection_environment(dict(os.environ)) if options.follow else {}),
        **(tool_environment(dict(os.environ), samples=bool(options.instructions)) if options.follow else {}),
        **audit_environment(options.accelerators, os.environ),
        OUTPUT_VARIABLE: str(part.output),
        SESSION_VARIABLE: str(part.folder),
        OPTIONS_VARIABLE: options.to_json(),
    }


def _kernel_recorder(options: Options, part: PartDirectory) -> KernelRecorder | None:
    if not options.kernel:
        return None
    from leadline.capture.kernel.recorder import KernelRecorder

    try:
        recorder = KernelRecorder(options.kernel, part.folder)
    except OSError as error:  # no room for what would be recorded
        say(f"The Linux kernel is not recorded: there is no folder for temporary files ({error.strerror}).")
        return None
    if recorder.sentence:
        say(recorder.sentence)
    return recorder


def _finish(part: PartDirectory, status: ExitStatus, rolling: Rolling | None) -> Path | None:
    """Make the file. Nothing here may change the program's exit status."""
    try:
        leave(part, status.record())  # the supervisor is the only root
        finished = finish(part) if rolling is None else rolling.finish()
    except Exception as error:
        say(f"The profile was not made ({error!r}); `leadline recover {part.directory}` may make it.")
        return None
    if finished.sentence:
        say(finished.sentence)
    return finished.path
