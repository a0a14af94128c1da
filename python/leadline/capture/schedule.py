"""A trace window by the clock. (Windows by training steps are the native side's: it sees where steps end.)"""

from __future__ import annotations

import os
from collections.abc import Callable

from leadline._own_thread import Flag, OwnThread
from leadline.capture.config import KERNEL_VARIABLE, Options, TraceWindow
from leadline.capture.native import Native
from leadline.capture.part import PartDirectory
from leadline.capture.process_info import MeasuredProcess


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


def show_window(
    native: Native, part: PartDirectory, process: MeasuredProcess, options: Options, *, forked: bool
) -> None:
    """Let children (loader workers) trace what they do while this process's window is open, and a supervisor that
    records the kernel know at once when it opens.

    A window by the clock is opened by every process that is started; only forked ones have no clock of their own.
    """
    window = options.trace
    if window is None:
        return
    if options.follow:
        parent = process.parent if not forked and window.steps is not None else None
        followed = str(part.window(parent)) if parent is not None else ""
        if not native.share_window(str(part.window(process.identity)), followed):
            native.count_loss(
                "internal_error", 1, "child processes cannot see when the trace window is open; their work is not in it"
            )
    path = os.environ.get(KERNEL_VARIABLE)
    if path and not forked:
        native.announce_window(path)
