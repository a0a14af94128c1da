"""`leadline top PID|FILE`: what a program that runs under Leadline does now."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.durations import duration
from leadline.cli.errors import CommandError

if TYPE_CHECKING:
    from leadline.profiles.live import LiveRun

_PART = ".part"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="PID|FILE", help="a process, or the file that its run will write")
    parser.add_argument(
        "--every", type=duration, default=2.0, metavar="TIME", help="time between two screens (default: 2s)"
    )
    parser.add_argument("--once", action="store_true", help="print one screen and exit (default without a terminal)")


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError where nothing runs there, or Textual is missing."""
    from leadline.profiles.live import LiveRun

    directory = find_part(arguments.what)
    live = LiveRun(directory)
    if arguments.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _once(live, arguments.every)
    if importlib.util.find_spec("textual") is None:
        raise CommandError("leadline top needs Textual; `pip install 'leadline[tui]'`, or --once for one screen.")
    from leadline.terminal.top import TopApp

    TopApp(live, str(directory).removesuffix(_PART), max(arguments.every, 0.2)).run()
    return 0


def find_part(what: str) -> Path:
    """The part directory of a process or file; raises CommandError."""
    if what.isdecimal() and not Path(what).exists():
        return _of_process(int(what))
    for path in (Path(what), Path(f"{what}{_PART}")):
        if path.is_dir() and path.name.endswith(_PART):
            return path
    if Path(what).is_file():
        raise CommandError(
            f"The run of {what} has ended; read it with `leadline report {what}` or `leadline view {what}`."
        )
    raise CommandError(f"No running program writes to {what}; give a process, or the file of its option -o.")


def _of_process(pid: int) -> Path:
    """By its environment, or that of a process that it has started (PID may be `leadline run` itself)."""
    from leadline.capture.config import SESSION_VARIABLE

    if not Path(f"/proc/{pid}").exists():
        raise CommandError(f"There is no process {pid}; `pgrep -af python` lists running programs.")
    pending, seen = [pid], set()
    refused = False
    while pending:
        one = pending.pop(0)
        seen.add(one)
        folder = Path(f"/proc/{one}")
        try:
            for word in (folder / "environ").read_bytes().split(b"\0"):
                name, _, value = word.partition(b"=")
                if name == SESSION_VARIABLE.encode() and Path(value.decode("utf-8", "surrogateescape")).is_dir():
                    return Path(value.decode("utf-8", "surrogateescape")).parent
            for task in (folder / "task").iterdir():
                pending += [int(child) for child in (task / "children").read_text().split() if int(child) not in seen]
        except PermissionError:
            refused = True
        except OSError:
            continue
    if refused:
        raise CommandError(f"Process {pid} belongs to another user; run this command as that user, or as root.")
    raise CommandError(
        f"Process {pid} was not started under Leadline; `leadline dump {pid}` shows what its threads do. If it "
        "measures itself, give the file that it writes."
    )


def _once(live: LiveRun, every_s: float) -> int:
    from leadline.profiles import ProfileFileError
    from leadline.report.live import live_facts, live_text

    try:
        first = live.read()
        second = first
        end = time.monotonic() + max(every_s, 0.2) * 5
        while second is first and not first.ended and time.monotonic() < end:  # until something is written
            time.sleep(min(every_s, 0.5))
            second = live.read()
            if second.now is not first.now:
                break
            second = first
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    print(live_text(live_facts(second)))
    return 0
