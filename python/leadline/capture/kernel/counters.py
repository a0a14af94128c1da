"""Counters of /proc, for machines that permit nothing else: how long each thread ran and waited for a CPU."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.capture.kernel.recording import Recording, Refused

_PROC = Path("/proc")


class CounterRecorder:
    """Reads every thread of this process's descendants at `begin` and at `end`."""

    switch: Path | None = None

    def __init__(self, level: str) -> None:
        """Raises Refused."""
        self._level = level
        if not (_PROC / "self/schedstat").exists():
            raise Refused("this kernel has no /proc/PID/schedstat")
        self._before: dict[int, tuple[int, int]] = {}
        self._after: dict[int, tuple[int, int]] = {}

    def begin(self) -> None:
        """The first reading."""
        self._before = _read()

    def end(self) -> None:
        """The second reading."""
        self._after = _read()

    def drain(self) -> None:
        """Threads may end before the window does: their last reading counts."""
        self._after.update(_read())

    def save(self, folder: Path) -> Recording:
        """The differences."""
        threads = {}
        for tid, (running, waiting) in self._after.items():
            before = self._before.get(tid, (0, 0))
            threads[str(tid)] = {"running_ns": running - before[0], "runnable_ns": waiting - before[1]}
        return Recording("counters", self._level, details={"threads": threads})

    def remove(self) -> None:
        """Nothing was left anywhere."""


def _read() -> dict[int, tuple[int, int]]:
    """(time on a CPU, time waiting for one) in ns of every thread below this process."""
    found: dict[int, tuple[int, int]] = {}
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        try:
            threads = [int(path.name) for path in (_PROC / str(process) / "task").iterdir()]
        except OSError:
            continue  # it has ended
        for thread in threads:
            folder = _PROC / str(process) / "task" / str(thread)
            try:
                waiting += [int(child) for child in (folder / "children").read_text(encoding="ascii").split()]
                if process != os.getpid():
                    running, runnable = (folder / "schedstat").read_text(encoding="ascii").split()[:2]
                    found[thread] = (int(running), int(runnable))
            except (OSError, ValueError):
                continue
    return found
