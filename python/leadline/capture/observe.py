"""What the kernel says of a program from outside: time in line for a core, memory, a quota. Its supervisor looks.

Nothing is done in the program. Twice a second the main threads of its processes are read in /proc, a few microseconds
each; what is kept has a bound whatever the run's length: where a series is full, every second point of it goes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field

LOOK_S = 0.5
_MOST_PROCESSES = 64
_MOST_POINTS = 32
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class _Series:
    """Points (s since the observer began, ns on a core, ns in line for one, resident bytes, threads) of one process."""

    points: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    every: int = 1
    seen: int = 0
    last: tuple[float, int, int, int, int] | None = None

    def add(self, point: tuple[float, int, int, int, int]) -> None:
        self.last = point
        self.seen += 1
        if (self.seen - 1) % self.every:
            return
        self.points.append(point)
        if len(self.points) >= _MOST_POINTS:
            self.points = self.points[::2]
            self.every *= 2

    def whole(self) -> list[tuple[float, int, int, int, int]]:
        """The points kept, with the last."""
        return self.points if self.last is None or self.points[-1:] == [self.last] else [*self.points, self.last]


class Often:
    """Says when `every_s` seconds have gone by since it said so last."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s = 0.0

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._due_s:
            return False
        self._due_s = now + 0.9 * self._every_s  # whoever asks comes a little early or late
        return True


class Observer:
    """Of the processes that `root` has started, and those that they started."""

    def __init__(self, root: int, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = root, proc
        self._began = time.monotonic()
        self._series: dict[int, _Series] = {}
        self._throttled_from = throttled_ns(proc)

    def poll(self) -> None:
        """Read every process once; whatever cannot be read is left out."""
        now = time.monotonic() - self._began
        for pid in self._descendants():
            if (point := self._point(pid, now)) is not None:
                self._series.setdefault(pid, _Series()).add(point)

    def observed(self) -> list[dict[str, Any]]:
        """For `meta.json`: a record of each process, its columns as lists of equal length."""
        throttled = throttled_ns(self._proc) - self._throttled_from
        return [
            {
                "pid": pid,
                "tid": pid,
                "time_s": [round(one[0], 3) for one in points],
                "ran_ns": [one[1] for one in points],
                "queued_ns": [one[2] for one in points],
                "resident_bytes": [one[3] for one in points],
                "threads": [one[4] for one in points],
                "throttled_ns": max(throttled, 0),
            }
            for pid, series in self._series.items()
            if (points := series.whole())
        ]

    def _descendants(self) -> list[int]:
        found: list[int] = []
        waiting = [self._root]
        while waiting and len(found) < _MOST_PROCESSES:
            for pid in self._children(waiting.pop()):
                found.append(pid)
                waiting.append(pid)
        return found

    def _children(self, pid: int) -> list[int]:
        try:
            tasks = list((self._proc / str(pid) / "task").iterdir())
            texts = [(one / "children").read_text() for one in tasks[:64]]
        except OSError:
            return []
        return [int(word) for text in texts for word in text.split()]

    def _point(self, pid: int, now: float) -> tuple[float, int, int, int, int] | None:
        folder = self._proc / str(pid)
        try:
            ran, queued = (int(word) for word in (folder / "task" / str(pid) / "schedstat").read_text().split()[:2])
            resident = int((folder / "statm").read_text().split()[1]) * _PAGE
            threads = len(list((folder / "task").iterdir()))
        except (OSError, ValueError, IndexError):
            return None
        return now, ran, queued, resident, threads


def throttled_ns(proc: Path = Path("/proc")) -> int:
    """Time for which this process's control group was held back by its quota so far; 0 where nobody says."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
        place = next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), "/")
        for folder in (Path("/sys/fs/cgroup" + place), Path("/sys/fs/cgroup")):
            stat = folder / "cpu.stat"
            if not stat.exists():
                continue
            for line in stat.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "throttled_usec":
                    return int(value) * 1000
    except (OSError, ValueError):
        return 0
    return 0
