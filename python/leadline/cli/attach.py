"""`leadline attach`: measure a process that runs already, for a while; `leadline attach --stop` ends it early."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leadline.capture.config import CPU_SAMPLE_HZ, WAIT_HZ, Options
from leadline.capture.errors import ProfileError
from leadline.capture.messages import say
from leadline.cli.durations import duration
from leadline.cli.errors import CommandError
from leadline.cli.left_out import split_rates

_WAITED_FOR_S = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process, for how long, and what is measured."""
    parser.add_argument(
        "pid", type=int, metavar="PID", help="a process with the same version of Python as this command"
    )
    parser.add_argument(
        "--seconds",
        type=duration,
        default=30.0,
        metavar="TIME",
        help="how long to measure, such as 2min (default: 30s)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: pid-PID.leadline)")
    parser.add_argument("--shapes", action="store_true", help="record shapes and types of operator inputs")
    parser.add_argument("--no-memory", action="store_true", help="do not record tensor memory")
    parser.add_argument("--trace", metavar="seconds=S", help="also record single events of S seconds, for timelines")
    parser.add_argument(
        "--cpu-sample",
        type=float,
        default=CPU_SAMPLE_HZ,
        metavar="HZ",
        help="CPU sampling rate of every thread (default: %(default)g; 0: none)",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="HZ",
        help=f"sampling rate of off-CPU waits (without HZ: {WAIT_HZ:g})",
    )
    parser.add_argument(
        "--counter", action="append", default=[], metavar="NAME", help="count this perf event; may be repeated"
    )
    parser.add_argument(
        "--native", default="", choices=("yes", "all"), help="record C and C++ frames; =all: also the interpreter's"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def split(words: Sequence[str]) -> list[str]:
    """Options whose value may be left out get one."""
    return split_rates(words)


def run(arguments: argparse.Namespace) -> int:
    """Begin measuring in the process, wait for the end, and print the summary. Ctrl-C ends it early."""
    from leadline.attach import family
    from leadline.attach.control import Control, address
    from leadline.attach.inject import run_python
    from leadline.attach.target import AttachError, Target

    options = _options(arguments)
    output = Path(arguments.output or f"pid-{arguments.pid}.leadline").absolute()
    try:
        target = Target(arguments.pid)
        try:
            line = _line(address(target.pid), output, arguments.seconds, options)
            reached: list[Control] = []
            run_python(target, line, lambda seconds: _answers(target.pid, seconds, reached))
        finally:
            target.close()
    except AttachError as error:
        raise CommandError(str(error)) from error
    control = reached[0]
    news = control.next()
    if news.get("state") == "measuring":
        if not arguments.quiet:
            say(f"measuring process {target.pid} ({target.command}) for {arguments.seconds:g} s into {news['output']}")
            if beside := family.sentence(target.pid):
                say(beside)
        news = _to_the_end(control)
    control.close()
    return _finish(target.pid, news, arguments.quiet, bool(options.native))


def _finish(pid: int, news: dict[str, Any], quiet: bool, native: bool) -> int:
    if news.get("state") != "done":
        raise CommandError(f"Process {pid} was not measured: {news.get('message')}")
    path = Path(str(news["path"]))
    if native:
        from leadline.cli.symbolize import symbolize_here

        symbolize_here(path)
    if not quiet:
        from leadline.report.summary import print_summary

        print_summary(str(path))
    return 0


def _to_the_end(control: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = control.next()
    except KeyboardInterrupt:
        control.stop()
        found = control.next()
    return found


def _answers(pid: int, seconds: float, reached: list[Any]) -> bool:
    from leadline.attach.control import Control
    from leadline.attach.target import AttachError

    try:
        reached.append(Control(pid, seconds))
    except AttachError:
        return False
    return True


def _options(arguments: argparse.Namespace) -> Options:
    if not arguments.seconds > 0:
        raise CommandError(
            f"The time to measure must be longer than zero, not {arguments.seconds:g} s; give --seconds 30s."
        )
    try:
        return Options.of(
            {
                "shapes": arguments.shapes,
                "memory": not arguments.no_memory,
                "trace": arguments.trace,
                "cpu_sample": arguments.cpu_sample,
                "wait": arguments.wait,
                "counters": arguments.counter,
                "native": arguments.native,
                "quiet": True,
            }
        )
    except ProfileError as error:
        raise CommandError(str(error)) from error


def _line(socket_name: str, output: Path, seconds: float, options: Options) -> str:
    """What the process runs. It may have another leadline, or none: then ours is found, and nothing else beside it."""
    package = Path(__file__).resolve().parents[2]
    begin = (socket_name, str(output), seconds, json.dumps(options.asked()), time.time() + _WAITED_FOR_S)
    return (
        "def _leadline_attach():\n"
        " import sys\n"
        " try:\n"
        "  from leadline.capture.attached import begin\n"
        " except ImportError:\n"
        f"  sys.path.append({str(package)!r})\n"
        "  try:\n"
        "   from leadline.capture.attached import begin\n"
        "  finally:\n"
        f"   sys.path.remove({str(package)!r})\n"
        f" begin{begin!r}\n"
        "try:\n"
        " _leadline_attach()\n"
        "finally:\n"
        " del _leadline_attach\n"
    )
