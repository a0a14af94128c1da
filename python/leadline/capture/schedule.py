"""When single events are kept: opens and closes the native trace window on step boundaries or by the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable

from leadline.capture.config import TraceWindow


class TraceSchedule:
    """Runs one trace window. `step_ended` is called at every training step's end; a daemon thread counts seconds."""

    def __init__(self, window: TraceWindow, open_window: Callable[[], None], close_window: Callable[[], None]) -> None:
        self._window = window
        self._open = open_window
        self._close = close_window
        self._steps_ended = 0
        self._state = "before"
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @property
    def by_steps(self) -> bool:
        """Whether the window needs to hear of steps."""
        return self._window.steps is not None

    def start(self) -> None:
        """The session begins: a window without a wait opens now."""
        if not self._window.wait:
            self._advance("open")
        elif self._window.seconds is not None:
            self._later(self._window.wait, "open")

    def step_ended(self) -> None:
        """A training step has ended on this thread."""
        if self._window.steps is None:
            return
        with self._lock:
            self._steps_ended += 1
            ended = self._steps_ended
        if ended == int(self._window.wait):
            self._advance("open")
        elif ended == int(self._window.wait) + self._window.steps:
            self._advance("closed")

    def stop(self) -> None:
        """The session ends: an open window closes, one that has not opened never does."""
        if self._timer is not None:
            self._timer.cancel()
        self._advance("closed")

    def _advance(self, state: str) -> None:
        with self._lock:
            before, self._state = self._state, "closed" if self._state == "closed" else state
        if before == "before" and state == "open":
            self._open()
            if self._window.seconds is not None:
                self._later(self._window.seconds, "closed")
        elif before == "open" and state == "closed":
            self._close()

    def _later(self, delay_s: float, state: str) -> None:
        self._timer = threading.Timer(delay_s, self._advance, [state])
        self._timer.daemon = True
        self._timer.name = "leadline-trace-window"
        self._timer.start()
