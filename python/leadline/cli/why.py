"""`leadline why`: why the step is slow, in one sentence. Runs a program, attaches to one, or reads a file.

A program runs to its end as the shell would run it, with its own exit code. While it runs, the verdict is printed as
soon as it is known (30 steps after the warm-up, or the time limit), and again at the end if it has changed. `--steps N`
ends the program by SIGINT after N steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.capture.messages import say
from leadline.cli.durations import duration
from leadline.cli.errors import CommandError
from leadline.cli.left_out import split as split_program

if TYPE_CHECKING:
    from leadline.capture.config import Options
    from leadline.capture.part import PartDirectory
    from leadline.profiles import Profile
    from leadline.verdict.model import Verdict

_STEPS = 30
_WARM_UP = 5
_FIRST_LOOK_S = 8.0
_BUDGET_S = 60.0
_HZ = 49.0
"""Samples a second of each thread and kind: 30 s of a step tell a share to 3 points, and cost under 0.5 %."""
_WAIT_HZ = 20.0
_FLUSH_S = 2.0
_NICE = 19
_LAST_LOOK_S = 5.0
"""For a look that the end of the program overtook; where others fill the cores it can take longer, and is let go."""
_NOTABLE = 0.1
"""Of the step: a remedy that gains less is no news at the end."""
_ALIKE = 1.25
"""Of two lengths of a step: they are the same one, measured for different times."""
_SCRIPTS = (".py", ".pyw", ".pyz", "")
"""Endings of what is run rather than read."""
_WITH_VALUE = ("--steps", "--budget", "--format", "-o", "--output", "--seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "leadline why [options] (SCRIPT | -m MODULE | -c CODE | -- COMMAND | PID | FILE) [ARGS ...]"
    parser.allow_abbrev = False
    parser.add_argument(
        "--steps", type=int, default=0, metavar="N", help="stop the program (as Ctrl-C does) after N steps"
    )
    parser.add_argument(
        "--seconds",
        type=duration,
        default=_BUDGET_S,
        metavar="TIME",
        help="print the verdict after this time at the latest; time to measure a PID (default: 60s; PID: 20s)",
    )
    parser.add_argument("--budget", type=duration, default=argparse.SUPPRESS, dest="seconds", help=argparse.SUPPRESS)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json, on stdout")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile to FILE (default: SCRIPT.leadline)")
    parser.add_argument(
        "--no-shapes",
        dest="shapes",
        action="store_false",
        help="do not record shapes of operator inputs (they give the share of the machine's peak rate)",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="run a line of code")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="script and its arguments")


def split(words: Sequence[str]) -> list[str]:
    """What follows the program is its own."""
    return split_program(words, with_value=_WITH_VALUE)


def run(arguments: argparse.Namespace) -> int:
    """Exit code of the program where one was run, else 0."""
    words: list[str] = list(arguments.program)
    is_program = arguments.module is not None or arguments.code is not None
    if not words and not is_program:
        from leadline.cli.files import newest_profile

        words = [newest_profile()]
    if not is_program and words[0] != "--":
        if words[0].isdigit() and not Path(words[0]).exists():
            return _attached(int(words[0]), _with_options(arguments, words[1:]))
        if _is_measured(Path(words[0]), alone=len(words) == 1):
            from leadline.cli.files import load_numpy, open_profile

            load_numpy()
            _tell(open_profile(words[0]), words[0], _with_options(arguments, words[1:]).format)
            return 0
    return _run(arguments)


def _with_options(arguments: argparse.Namespace, words: Sequence[str]) -> argparse.Namespace:
    """What follows a file or a process is no program's: options stand before it or behind it."""
    if words:
        parser = argparse.ArgumentParser(prog="leadline why")
        add_arguments(parser)
        parser.parse_args(words, arguments)
        if arguments.program:
            raise CommandError(f"leadline why reads one file or process; leave out {' '.join(arguments.program)}.")
    return arguments


def _is_measured(path: Path, *, alone: bool) -> bool:
    """Whether it is a profile, a trace of another profiler, or a folder of ranks; a script is none of them. Raises
    CommandError where it is neither and nothing follows it that a program may be given."""
    if path.is_dir():
        return not (path / "__main__.py").exists()
    if path.suffix == ".leadline":
        return True
    if path.suffix in _SCRIPTS or not path.exists():
        return False
    from leadline.opening.commands import Kind, kind_of
    from leadline.trace.importers import recognised

    if recognised(path):
        return True
    kind = kind_of(str(path))
    if kind is Kind.SCRIPT or (kind is Kind.PROGRAM and not alone):
        return False
    advice = f"; to measure the program: leadline why -- {path}" if kind is Kind.PROGRAM else "; check its name"
    raise CommandError(f"{path} is not a profile, a trace that Leadline can read, or a Python script{advice}.")


def _run(arguments: argparse.Namespace) -> int:
    from leadline.capture.errors import ProfileError
    from leadline.cli import run as verb

    parser = argparse.ArgumentParser(prog="leadline run")
    verb.add_arguments(parser)
    asked = parser.parse_args(["--quiet"])
    asked.output, asked.shapes = arguments.output, arguments.shapes
    asked.module, asked.code, asked.program = arguments.module, arguments.code, arguments.program
    try:
        command = verb.program_of(asked)
    except ProfileError as error:
        raise CommandError(str(error)) from error
    if shutil.which(command.argv[0]) is None:
        raise CommandError(f"Cannot run {command.argv[0]}: no such command; check the name, or give the whole path.")
    watch = Watch(arguments)
    if arguments.format == "text":
        say(f"measuring; prints the verdict within {arguments.seconds:g} s, or when the program ends")
    status, path, _ = verb.measure(asked, _options(arguments), watch.look)
    watch.end()
    if path is not None:
        from leadline.profiles import ProfileFileError, open_profile

        try:
            profile = open_profile(str(path))
        except ProfileFileError as error:
            raise CommandError(str(error)) from error
        if arguments.shapes:
            _measure_machine(profile)
        watch.tell_at_the_end(profile, str(path))
    return 0 if watch.ended_it else status.leave()


def _measure_machine(profile: Profile) -> None:
    """What products could attain here, once for each number of threads."""
    from leadline.analysis.threads import of_operators
    from leadline.cli.peak import measure_threads

    measure_threads(of_operators(profile)[0])


def _options(arguments: argparse.Namespace) -> Callable[[], Options]:
    from leadline.capture.config import Options

    def made() -> Options:
        return Options.of(
            {
                "shapes": arguments.shapes,
                "cpu_sample": _HZ,
                "cpu_sample_unasked": True,
                "wait": _WAIT_HZ,
                "quiet": True,
                "flush_interval_s": _FLUSH_S,
            }
        )

    return made


class Watch:
    """Looks at the segments of a program that runs, and says the verdict when there is enough for one."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._format = arguments.format
        self._steps = arguments.steps
        self._budget_s = arguments.seconds
        self._began = time.monotonic()
        self._next_s = _FIRST_LOOK_S
        self._said: Verdict | None = None
        self._steps_before = 0
        self._looking: threading.Thread | None = None
        self._program_ended = False
        self.ended_it = False

    def look(self, part: PartDirectory) -> None:
        """Called twice a second; costs something only now and then. What costs runs in a thread that takes only what
        the program leaves of the cores: a step whose threads wait for each other is as late as the one that yields."""
        passed = time.monotonic() - self._began
        looks_still = self._looking is not None and self._looking.is_alive()
        if passed < self._next_s or looks_still or self.ended_it or (self._said is not None and not self._steps):
            return
        self._next_s = min(passed * 1.5, passed + 10)
        self._looking = threading.Thread(target=self._look_aside, args=(part, passed), daemon=True)
        self._looking.start()

    def _look_aside(self, part: PartDirectory, passed: float) -> None:
        with contextlib.suppress(Exception):  # the program goes on, whatever a look meets
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # of this thread alone, on Linux
            self.look_now(part, passed)

    def look_now(self, part: PartDirectory, passed: float) -> None:
        """`passed`: seconds since the program was started."""
        from leadline.profiles.live import LiveRun
        from leadline.verdict.judge import judge
        from leadline.verdict.model import CLASSES

        profile = LiveRun(part.directory).read().whole
        steps = _steps_of(profile)
        goes_on, self._steps_before = 0 < self._steps_before < steps, steps  # what a set-up repeats does not
        wanted = self._steps or _STEPS + _WARM_UP
        if (steps < wanted or not goes_on) and passed < self._budget_s:
            return
        if self._said is None and self._format == "text":
            verdict = judge(profile)
            if verdict.kind != "cannot_tell" and verdict.kind in CLASSES and not self._program_ended:
                self._said = verdict
                _print(verdict, str(part.output), sys.stderr, so_far=True)
                if not self._steps:
                    say("the program continues and is measured until it ends; Ctrl-C ends it")
        if self._steps and steps >= self._steps:
            self._end(profile)

    def end(self) -> None:
        """The program has ended: a look that is not finished says nothing more."""
        self._program_ended = True
        if self._looking is not None:
            self._looking.join(_LAST_LOOK_S)

    def _end(self, profile: Profile) -> None:
        """SIGINT to the process that trains, as Ctrl-C would; its handlers and finally clauses run."""
        pids = [one.pid for one in profile.processes if one.parent_pid not in {p.pid for p in profile.processes}]
        self.ended_it = True
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGINT)

    def tell_at_the_end(self, profile: Profile, file: str) -> None:
        from leadline.verdict.judge import judge

        verdict = judge(profile)
        if self._said is not None and _same(self._said, verdict) and self._format == "text":
            say(f"the verdict is the same for the whole run; the profile is {file}")
            return
        _tell(profile, file, self._format, stream_of_program=True)


def _same(before: Verdict, after: Verdict) -> bool:
    """Whether a reader of the first has read the second: the same cause at the same place, of steps nearly as long, and
    what would gain most of it."""
    if not _proposed(after) <= _proposed(before):
        return False
    first, then, here, there = before.account, after.account, before.place, after.place
    if first is None or then is None or here is None or there is None:
        return before.sentence == after.sentence
    short, long = sorted((first.wall_ns, then.wall_ns))
    alike = first.of == then.of and (first.of == "run" or long <= _ALIKE * short)
    return before.kind == after.kind and (here.file, here.line) == (there.file, there.line) and alike


def _proposed(verdict: Verdict) -> set[str]:
    """What its remedies say, of those that are worth reading once more."""
    from leadline.verdict.fixes import CORES

    account = verdict.account
    least = _NOTABLE * account.wall_ns if account is not None else 0.0
    return {one.do for one in verdict.fixes if one.gain_ns >= least and one.rule != CORES}


def _steps_of(profile: Profile) -> int:
    from leadline.analysis.case import case_of

    loop = case_of(profile).known_loop
    return loop.steps if loop is not None else 0


def _attached(pid: int, arguments: argparse.Namespace) -> int:
    from leadline.cli import attach as verb

    parser = argparse.ArgumentParser(prog="leadline attach")
    verb.add_arguments(parser)
    seconds = min(arguments.seconds, 20.0) if arguments.seconds == _BUDGET_S else arguments.seconds
    output = arguments.output or f"pid-{pid}.leadline"
    asked = parser.parse_args([str(pid), "--quiet", "-o", output, "--seconds", str(seconds), "--wait", f"{_WAIT_HZ:g}"])
    say(f"measuring process {pid} for {seconds:g} s")
    code = verb.run(asked)
    if code == 0:
        from leadline.cli.files import open_profile

        _tell(open_profile(output), output, arguments.format)
    return code


def _tell(profile: Profile, file: str, form: str, *, stream_of_program: bool = False) -> None:
    from leadline.verdict.judge import judge
    from leadline.verdict.model import as_object

    verdict = judge(profile)
    if form == "json":
        print(json.dumps(as_object(verdict), indent=2, allow_nan=False))
        return
    _print(verdict, file, sys.stderr if stream_of_program else sys.stdout)


def _print(verdict: object, file: str, stream: object, *, so_far: bool = False) -> None:
    from typing import TextIO, cast

    from leadline.report.encoding import encodable, for_stream
    from leadline.report.source import visible
    from leadline.verdict.model import Verdict
    from leadline.verdict.text import as_lines, head

    made, target = cast(Verdict, verdict), cast(TextIO, stream)
    width, _ = for_stream(target)
    name = file.rsplit("/", 1)[-1]
    first = f"{name}   {head(made, so_far=so_far)}".rstrip()
    text = "\n".join(
        visible(one) for one in (first, *as_lines(made, width), f"{'next':<10}leadline report {shlex.quote(file)}")
    )
    target.write(encodable(text + "\n", target))
