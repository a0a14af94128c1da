"""Segments of a run as they were at equal intervals, so that early, middle and late parts of it can be told apart.

A segment is whole and is replaced by a rename, so a second link to it keeps it as it was: no copy, nothing in the
program. Eight at most are kept of each process, whatever the run's length: of so many every second one goes, and the
next ones are taken half as often.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from leadline._package import SEGMENT_SUFFIX

SUFFIX = ".snapshot"
_FIRST_S = 2.0
_KEPT = 8
_MOST_PROCESSES = 8
_MOST_BYTES = 64 << 20


class Snapshots:
    """Of the processes that write segments into `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.monotonic()
        self._every_s = self._next_s = _FIRST_S
        self._numbers: list[int] = []

    def poll(self) -> None:
        """Keep the segments where it is time; a folder that is gone or full costs the snapshot only."""
        if time.monotonic() - self._began < self._next_s:
            return
        self._next_s += self._every_s
        with contextlib.suppress(OSError):
            segments = sorted(self._folder.glob(f"*{SEGMENT_SUFFIX}"))[:_MOST_PROCESSES]
            fresh = [one for one in segments if (facts := one.stat()).st_nlink == 1 and facts.st_size <= _MOST_BYTES]
            if not fresh:
                return  # none was written since
            number = self._numbers[-1] + 1 if self._numbers else 0
            for one in fresh:
                os.link(one, one.with_name(f"{one.name.removesuffix(SEGMENT_SUFFIX)}.{number}{SUFFIX}"))
            self._numbers.append(number)
            if len(self._numbers) > _KEPT:
                self._thin_out()

    def _thin_out(self) -> None:
        for number in self._numbers[::2]:
            for old in self._folder.glob(f"*.{number}{SUFFIX}"):
                old.unlink()
        self._numbers = self._numbers[1::2]
        self._every_s *= 2


def snapshots_of(segment: Path) -> list[Path]:
    """Those of the process that wrote `segment`, the earliest first."""
    stem = segment.name.removesuffix(SEGMENT_SUFFIX)
    found = segment.parent.glob(f"{stem}.*{SUFFIX}")
    return sorted(found, key=lambda path: int(path.name.removesuffix(SUFFIX).rpartition(".")[2]))
