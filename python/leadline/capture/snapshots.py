"""Segments of a run as they were at doubling times, so that early, middle and late parts of it can be told apart.

A segment is whole and is replaced by a rename, so a second link to it keeps it as it was: no copy, nothing in the
program. Three are kept of each process, whatever the run's length.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from leadline._package import SEGMENT_SUFFIX

SUFFIX = ".snapshot"
_FIRST_S = 2.0
_KEPT = 3
_MOST_PROCESSES = 8
_MOST_BYTES = 64 << 20


class Snapshots:
    """Of the processes that write segments into `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.monotonic()
        self._next_s = _FIRST_S
        self._number = 0

    def look(self) -> None:
        """Keep the segments where it is time; a folder that is gone or full costs the snapshot only."""
        if time.monotonic() - self._began < self._next_s:
            return
        self._next_s *= 2
        with contextlib.suppress(OSError):
            segments = sorted(self._folder.glob(f"*{SEGMENT_SUFFIX}"))[:_MOST_PROCESSES]
            if not segments:
                return
            for one in segments:
                if one.stat().st_size <= _MOST_BYTES:
                    os.link(one, one.with_name(f"{one.name.removesuffix(SEGMENT_SUFFIX)}.{self._number}{SUFFIX}"))
            for old in self._folder.glob(f"*.{self._number - _KEPT}{SUFFIX}"):
                old.unlink()
            self._number += 1


def snapshots_of(segment: Path) -> list[Path]:
    """Those of the process that wrote `segment`, the earliest first."""
    stem = segment.name.removesuffix(SEGMENT_SUFFIX)
    found = segment.parent.glob(f"{stem}.*{SUFFIX}")
    return sorted(found, key=lambda path: int(path.name.removesuffix(SUFFIX).rpartition(".")[2]))
