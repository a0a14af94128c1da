"""Runs a program and looks at it from outside while it runs: its processes in /proc, its segments at doubling times."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from leadline._package import SEGMENT_SUFFIX
from leadline.capture.config import KERNEL_VARIABLE
from leadline.capture.errors import ProfileError
from leadline.capture.messages import say
from leadline.capture.observe import LOOK_S, Observer, Often
from leadline.capture.output import keep_old
from leadline.capture.part import PartDirectory
from leadline.capture.snapshots import Snapshots, snapshots_of
from leadline.capture.supervisor import Command, ExitStatus, run_program, run_unmeasured
from leadline.cli.errors import CommandError

if TYPE_CHECKING:
    from leadline.capture.kernel.recorder import KernelRecorder
    from leadline.capture.rolling import Rolling


def observed_run(
    command: Command,
    part: PartDirectory,
    environment: dict[str, str],
    recorder: KernelRecorder | None,
    rolling: Rolling | None,
    look: Callable[[PartDirectory], None] | None,
) -> ExitStatus:
    """Run the program to its end. `look` is called twice a second; what was seen is noted in the session's record."""
    observer, snapshots = Observer(os.getpid()), Snapshots(part.folder)
    often = Often(LOOK_S)
    every_s = LOOK_S
    if recorder is not None:
        from leadline.capture.kernel.recorder import LOOK_S as KERNEL_LOOK_S

        every_s = KERNEL_LOOK_S
        if recorder.switch is not None:
            environment[KERNEL_VARIABLE] = str(recorder.switch)

    def beat() -> None:
        if recorder is not None:
            recorder.poll()
        if not often.due():
            return
        part.beat()
        observer.poll()
        snapshots.poll()
        if rolling is not None:
            rolling.beat()
        if look is not None:
            look(part)

    try:
        return run_program(command, environment, beat, every_s)
    finally:
        with contextlib.suppress(Exception):
            part.note_observed(observer.observed(), _growth(part))


def _growth(part: PartDirectory) -> list[dict[str, Any]]:
    """How the paths of the process with the largest segment changed over the run; empty for a short one."""
    try:
        segments = sorted(part.folder.glob(f"*{SEGMENT_SUFFIX}"), key=lambda path: -path.stat().st_size)
        kept = snapshots_of(segments[0]) if segments else []
        if len(kept) < 2:
            return []
        from leadline.verdict.growth import growth

        return growth(kept, segments[0])
    except Exception as error:  # the profile is worth more
        say(f"The report has no changes over time ({type(error).__name__}: {error}).")
        return []


def run_anyway(command: Command, error: Exception) -> NoReturn:
    """The program was to run, and runs."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
    say(f"{command.name} runs unmeasured: {reason}.")
    try:
        run_unmeasured(command)
    except OSError as failed:
        raise CommandError(f"Cannot run {command.argv[0]}: {failed.strerror}.") from failed


def kept_name(part: PartDirectory) -> Path | None:
    """The name under which the profile that this run will replace stays. Raises ProfileError; the run has not begun."""
    try:
        return keep_old(part.output)
    except ProfileError:
        part.remove()
        raise
