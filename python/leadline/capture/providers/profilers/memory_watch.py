"""Looks after the memory of a framework's profiler while a window is open.

Such a profiler keeps every event until it is stopped, and one run of a program with loops of hundreds of thousands of
steps is one window, however much it records. A thread of its own looks how far the process has grown since the window
was opened.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from leadline._own_thread import OwnThread

MOST_BYTES = 64 * 2**20
"""Of growth in a window, until it is known how much of it is the program's own. Stopping XLA's recorder takes three
times the memory that it holds, and some 8 µs for each 300 bytes."""
EVERY_S = 0.02


def resident_bytes() -> int:
    """Memory of this process; 0 where it cannot be read."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


class Watch:
    """Calls `too_large` with how much the process has grown when that is more than `most_bytes`, once a window."""

    def __init__(self, too_large: Callable[[int], None], resident: Callable[[], int] = resident_bytes) -> None:
        self._too_large = too_large
        self._resident = resident
        self._open = False
        self._wake = threading.Lock()
        """Free when a window has been opened since the thread last looked. Freed in one step of the interpreter: of an
        `Event`, a signal handler that ends the window would wait for the step that it came into."""
        self._wake.acquire()
        self._thread: OwnThread | None = None
        self._before = 0
        self._windows = 0
        self.most_bytes = MOST_BYTES

    def begin(self, *, threaded: bool = True) -> None:
        """A window is open."""
        self._windows += 1
        self._before = self._resident()
        self._open = True
        with contextlib.suppress(RuntimeError):  # it is free
            self._wake.release()
        if threaded and self._thread is None:
            self._thread = OwnThread(self._run)
            self._thread.start()

    def widen(self) -> bool:
        """What had grown was the program's own: room for twice as much the next time, up to an eighth of the machine's
        memory. Whether there is more room."""
        most = mmap.PAGESIZE * os.sysconf("SC_PHYS_PAGES") // 8
        wider, self.most_bytes = self.most_bytes < most, min(2 * self.most_bytes, most)
        return wider

    def end(self) -> None:
        """It is no more."""
        self._open = False

    def sample(self) -> None:
        """How far the process has grown; nothing while no window is open."""
        window = self._windows
        grown = self._resident() - self._before
        if self._open and window == self._windows and grown > self.most_bytes:
            self.end()
            self._too_large(grown)

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            while self._open:
                time.sleep(EVERY_S)
                self.sample()
