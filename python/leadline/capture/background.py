"""Work of Leadline in the background: on its own thread, from a given time on, paused while the program forks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from leadline._own_thread import Flag, OwnThread


class Keeper(Protocol):
    """What is done in the background."""

    def run(self, ended: Flag) -> None:
        """Until `ended` is set; may be called again afterwards."""

    def close(self) -> None:
        """The session ends; `run` has returned."""


class Background:
    """Makes a keeper when `after_s` seconds have passed, at once where that is 0, and lets it run until `stop`."""

    def __init__(
        self,
        after_s: float,
        make: Callable[[], Keeper],
        *,
        wait: Callable[[Flag, float], bool] = Flag.wait,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._wait = wait
        self._clock = clock
        self._due_s = clock() + after_s
        self._keeper = make() if not after_s else None
        self._running: tuple[Flag, OwnThread] | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin, or continue after `pause`. Raises RuntimeError where the system has no room for another thread."""
        if self._running is not None or self._stopped:
            return
        ended = Flag()
        thread = OwnThread(self._run, ended)
        thread.start()
        self._running = ended, thread

    def pause(self) -> None:
        """End the thread; what it keeps stays as it is."""
        if self._running is not None:
            ended, thread = self._running
            self._running = None
            ended.set()
            thread.join()

    def stop(self) -> None:
        """The session ends."""
        self._stopped = True
        self.pause()
        if self._keeper is not None:
            self._keeper.close()

    def _run(self, ended: Flag) -> None:
        if self._keeper is None:
            if self._wait(ended, self._due_s - self._clock()):
                return
            self._keeper = self._make()
        self._keeper.run(ended)
