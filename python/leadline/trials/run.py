"""One run of a variant: a process group with its own scratch directory, its records read when it has ended.

Nothing of it stays behind: its group is ended with it, whether it ended, took too long, or the user pressed Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field, replace
from leadline.remedies.plan import VARIABLE, Plan
from leadline.remedies.trial import GRACE_S
from leadline.trials import processes
from leadline.trials.scratch import Place, Scratch
from leadline.trials.trackers import off
from leadline.trials.variant import Variant

_LOG_BYTES = 1 << 20
_LINES = 6
_BEAT_S = 0.05
_Ended = tuple[int, bool, tuple[str, ...]]
_LEADLINE = ("LEADLINE", "LEADLINE_OPTIONS", "LEADLINE_SESSION")


@dataclass(frozen=True)
class Run:
    """How one run ended. `record`: of the process whose steps count (of ranks the first); `measured_ns`: of a step, the
    slowest rank's; `begin`, `end`: numbers from its parameters before the first step and behind the last."""

    variant: str
    code: int
    record: Mapping[str, Any] = field(default_factory=dict)
    processes: int = 0
    step_ns: float = 0.0
    memory: Mapping[str, int] = field(default_factory=dict)
    tail: tuple[str, ...] = ()
    timed_out: bool = False
    begin: array[float] | None = field(default=None, repr=False)
    end: array[float] | None = field(default=None, repr=False)
    left: tuple[str, ...] = ()
    """Processes that lived on when it had ended."""

    @property
    def steps(self) -> int:
        return int(self.record.get("steps", 0))

    @property
    def values(self) -> list[tuple[int, float]]:
        """(step, value given to `backward()`), in order."""
        return [(int(step), float(value)) for step, value in self.record.get("values", ())]

    @property
    def outcomes(self) -> dict[str, str]:
        return dict(self.record.get("outcomes", {}))


def run(
    variant: Variant,
    plan: Plan,
    scratch: Scratch,
    *,
    limit_s: float,
    measured: Callable[[Sequence[str]], list[str]] | None = None,
) -> Run:
    """Runs the program once. `measured`: the command that measures a command. Raises NotApplied, TrialError and
    KeyboardInterrupt, and ScratchFull where its disk is what ended it."""
    with scratch.place(variant.folder) as place:
        told = Path(place.records) / "plan.txt"
        replace(plan, folder=place.records, remedies=_named(variant)).write(told)
        words = place.words(variant.argv if measured is None else measured(variant.argv))
        environment = {**os.environ, **off(place.records), **variant.environment(), VARIABLE: str(told)}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1"} if scratch.way(variant.folder) != "in place" else {}
        for name in _LEADLINE:
            environment.pop(name, None)
        if measured is None:
            environment["LEADLINE"] = "trial"
        log = Path(place.records) / "log"
        code, timed_out, left = _wait(words, environment, place, log, limit_s)
        found = replace(_read(variant.name, code, timed_out, Path(place.records), log, place), left=left)
        if not found.step_ns:
            scratch.check_room()
        return found


def _named(variant: Variant) -> tuple[tuple[str, str, str], ...]:
    return tuple((one.name, one.chosen, file) for one, file in variant.remedies)


def _wait(words: list[str], environment: dict[str, str], place: Place, log: Path, limit_s: float) -> _Ended:
    """Exit code, whether it took too long, and what it left running."""
    began = time.monotonic()
    processes.adopt_orphans()
    before = processes.below(os.getpid())
    left: set[int] = set()
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                words,
                cwd=place.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            out.write(f"Cannot run {words[0]}: {error.strerror}.\n".encode())
            return 127, False, ()
        try:
            while process.poll() is None:
                if time.monotonic() - began > limit_s:
                    return 124, True, ()
                if _ended_s(Path(place.records)) > GRACE_S + 15:  # a launcher that waits for nobody
                    return 0, False, ()
                time.sleep(_BEAT_S)
            left = processes.left_behind(os.getpid(), before)
            return process.returncode, False, tuple(sorted(filter(None, map(processes.title, left))))
        finally:
            _end_group(process)
            processes.end(processes.below(os.getpid()) - before)


def _ended_s(records: Path) -> float:
    """Seconds since a process wrote its record; 0 where none has."""
    newest = max((one.stat().st_mtime for one in records.glob("*.json")), default=0.0)
    return time.time() - newest if newest else 0.0


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
        if not _group_lives(process.pid):
            return


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(variant: str, code: int, timed_out: bool, records: Path, log: Path, place: Place) -> Run:
    found = []
    for path in sorted(records.glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            found.append(_led_back(json.loads(path.read_text(encoding="utf-8")), place))
    tail = _tail(log)
    if not found:
        return Run(variant, code, tail=tail, timed_out=timed_out)
    most = max(one["steps"] for one in found)
    with_steps = [one for one in found if one["steps"] == most]
    main = min(with_steps, key=lambda one: (one["rank"], one["pid"]))
    times = [
        one["measured_ns"] / (one["steps"] - one["warm_up"])
        for one in with_steps
        if one["measured_ns"] and one["steps"] > one["warm_up"]
    ]
    memory: dict[str, int] = {}
    for one in with_steps:
        for name, value in one["memory"].items():
            memory[name] = memory.get(name, 0) + int(value)
    return Run(
        variant,
        code,
        main,
        len(with_steps),
        max(times, default=0.0),
        memory,
        tail,
        timed_out,
        _numbers(records / f"{main['pid']}.begin"),
        _numbers(records / f"{main['pid']}.end"),
    )


def _led_back(record: dict[str, Any], place: Place) -> dict[str, Any]:
    """Files of a copy of the directory are the files that were copied."""
    if place.original:
        sources = record.get("sources", {})
        record["sources"] = {
            place.original + file[len(place.folder) :] if file.startswith(place.folder + os.sep) else file: digest
            for file, digest in sources.items()
        }
    return record


def _numbers(path: Path) -> array[float] | None:
    found = array("d")
    try:
        found.frombytes(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _tail(log: Path) -> tuple[str, ...]:
    """The last lines of what the program printed."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _LOG_BYTES, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [line.rpartition("\r")[2].rstrip() for line in text.splitlines()]
    return tuple(line[:300] for line in lines if line.strip())[-_LINES:]
