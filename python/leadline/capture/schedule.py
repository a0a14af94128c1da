"""A trace window by the clock. (Windows by training steps are the native side's: it sees where steps end.)"""

from __future__ import annotations

from collections.abc import Callable

from leadline._own_thread import Flag, OwnThread
from leadline.capture.config import TraceWindow


class TimedWindow:
    """Opens a trace window after `window.wait` seconds and closes it `window.seconds` later, on a thread of its own."""

    def __init__(self, window: TraceWindow, open_window: Callable[[], None], close_window: Callable[[], None]) -> None:
        if window.seconds is None:
            raise ValueError("a timed window needs seconds")
        self._wait_s = window.wait
        self._length_s = window.seconds
        self._open = open_window
        self._close = close_window
        self._ended = Flag()
        self._thread = OwnThread(self._run)

    def start(self) -> None:
        """The session begins."""
        if not self._wait_s:
            self._open()
        self._thread.start()

    def stop(self) -> None:
        """The session ends: an open window closes, one that has not opened never does."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        if self._wait_s:
            if self._ended.wait(self._wait_s):
                return
            self._open()
        self._ended.wait(self._length_s)
        self._close()
