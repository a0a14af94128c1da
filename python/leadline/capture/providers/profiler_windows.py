"""Short windows in which a framework's own profiler runs, so that exact counts become estimates of time.

One window at a time, and none while the program uses that profiler itself: a framework has one session per process.
What windows have cost decides when the next one comes.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from leadline.capture.providers.window_watch import Watch

BETWEEN_S = 1.0
_HELD_PER_BYTE = 6
"""What a recorder holds at least for each byte that it gives when it is stopped."""
FIRST_RUNS_SHARE = 0.03
"""Of all time so far, what timing what was never timed before may cost."""


class ProfilerWindows:
    """Opens and closes windows; a framework says how. Every method may be called on any thread."""

    PROFILER: ClassVar[str]
    """Whose profiler it is, as sentences name it."""
    SHORTEST_S: ClassVar[float]
    COST_SHARE: ClassVar[float]
    """A window may cost this share of the time until the next."""

    def __init__(self, loss: Callable[[str], None], trace_is_open: Callable[[], bool] | None = None) -> None:
        """`trace_is_open`: whether the trace window is open, where there may be one."""
        self._loss = loss
        self._trace_is_open = trace_is_open
        self._traces = False
        """Whether the session that is open lasts as long as the trace window."""
        self._lock = threading.Lock()
        self._stopping = threading.Lock()
        self._session: Any = None
        self._watch = Watch(self._give_up)
        self._opened_s = 0.0
        self._next_s = 0.0
        self._began_s = time.monotonic()
        self._first_runs_s = 0.0
        self._for_first_run = False
        self.off = ""
        """Why there are no windows; empty while there are."""
        self.count = 0
        self.given_up = 0
        """Windows that recorded more than may be held."""
        self.cost_s = 0.0
        self.open_s = 0.0

    def begin_session(self) -> Any:
        """Start the profiler; None where it is in use. Where it cannot be used at all, sets `off` or raises."""
        raise NotImplementedError

    def last_run(self, output: Any) -> None:
        """The window ends now: wait for what must be in it."""

    def add_up(self, session: Any) -> None:
        """Stop the profiler and take in what it has seen."""
        raise NotImplementedError

    def discard(self, session: Any) -> int:
        """Stop the profiler and forget what it has seen; how many bytes that was."""
        raise NotImplementedError

    def settle(self, output: Any) -> None:
        """A session for the trace window is about to begin: wait for what must not be in it."""

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """No window is open, and none is opened meanwhile."""
        with self._lock:
            self._close(None)
            yield

    def end_for_good(self, why: str) -> None:
        """No more windows, for this reason; to be called inside `closed`."""
        self.off = why
        self._loss(why)

    def closed_before(self, original: Callable[..., Any], *, for_good: str = "") -> Callable[..., Any]:
        """A function that begins a session of the program's, to be put in the place of `original`. `for_good`: why
        there are no windows any more once it has been called."""

        @functools.wraps(original)
        def first(*arguments: Any, **named: Any) -> Any:
            with self.closed():
                if for_good:
                    self.end_for_good(for_good)
                return original(*arguments, **named)

        return first

    def close(self, output: Any = None) -> None:
        """End the window that is open, if any, and add up what was in it."""
        if self._session is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._close(output)
        finally:
            self._lock.release()

    def stepped(self) -> None:
        """A step ends here; the trace window may have begun with it, or ended."""
        try:
            if self._trace_turns():
                self._turn(None)
        except Exception as error:
            self._loss(f"What {self.PROFILER} runs could not be followed into the trace window ({error!r}).")

    def _trace_turns(self) -> bool:
        return self._trace_is_open is not None and not self.off and self._trace_is_open() != self._traces

    def _turn(self, output: Any) -> None:
        """The trace window has opened, from when on one session lasts until it is seen to have closed, or has closed.
        Without steps it is seen at a call into the framework, which is not in the session then."""
        self.close(output)
        self._traces = not self._traces
        if not self._traces:
            return
        self.settle(output)
        self._open(first_run=False)
        if self._session is None and not self.off:
            self._loss(
                f"The trace window has nothing of what {self.PROFILER} ran, since its profiler was in use when the "
                "window opened; take only one of the two at a time."
            )

    def _may_time_first(self) -> bool:
        return self._first_runs_s <= 0.05 + FIRST_RUNS_SHARE * (time.monotonic() - self._began_s)

    def _is_due(self) -> bool:
        return time.monotonic() >= self._next_s

    def _is_over(self) -> bool:
        if self._traces:
            return False
        return self._for_first_run or time.monotonic() - self._opened_s >= self.SHORTEST_S

    def _open(self, *, first_run: bool) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._session is None and not self.off:
                self._begin(first_run)
        finally:
            self._lock.release()

    def _begin(self, first_run: bool) -> None:
        try:
            self._session = self.begin_session()
        except Exception as error:
            self.off = (
                f"{self.PROFILER}'s profiler could not be used, so operations have counts and no times ({error})."
            )
        if self.off:
            self._loss(self.off)
        if self._session is None:
            self._next_s = time.monotonic() + BETWEEN_S
        self._for_first_run = first_run
        self._opened_s = time.monotonic()
        if self._session is not None:
            self._watch.begin()

    def _close(self, output: Any) -> None:
        """With the lock held."""
        if self._session is None:
            return
        self.last_run(output)
        session = self._take_session()
        if session is None:  # given up meanwhile
            return
        began_s = time.monotonic()
        self.open_s += began_s - self._opened_s
        try:
            self.add_up(session)
        except Exception as error:
            self._loss(f"A window of {self.PROFILER}'s profiler could not be added up ({error!r}).")
        self._count_cost(time.monotonic() - began_s)

    def _take_session(self) -> Any:
        with self._stopping:
            session, self._session = self._session, None
            self._watch.end()
        return session

    def _count_cost(self, took_s: float) -> None:
        self.cost_s += took_s
        if self._for_first_run:
            self._first_runs_s += took_s
        else:
            self._next_s = time.monotonic() + max(BETWEEN_S, took_s / self.COST_SHARE)

    def _give_up(self, grown: int) -> None:
        """Called beside the program: what runs may go on for long, so the profiler is stopped within it."""
        with self._stopping:
            session, self._session = self._session, None
            if session is None:
                return
            began_s = time.monotonic()
            try:
                recorded = self.discard(session)
            except Exception as error:
                self._loss(f"A window of {self.PROFILER}'s profiler was lost ({error!r}).")
                recorded = 0
            self._count_cost(time.monotonic() - began_s)
        most = self._watch.most_bytes
        if recorded * _HELD_PER_BYTE < grown // 2 and self._watch.widen():
            return
        self.given_up += 1
        self.gave_up()
        self._loss(
            f"{self.PROFILER}'s profiler took more than {most >> 20} MiB for a single run (loops of "
            "very many steps), so it was stopped; such runs are counted, and timed only where others are."
        )

    def gave_up(self) -> None:
        """A window was given up because of what was recorded."""
