"""Short windows in which a framework's own profiler runs, so that exact counts become estimates of time.

One window at a time, and none while the program uses that profiler itself: a framework has one session per process.
What windows have cost decides when the next one comes.

Promise: a session of the program waits for no more than our recorder's being stopped, never for a run. It may begin on
any thread at any moment: while another thread opens or closes a window, and in a signal handler between two lines here.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from leadline.capture.providers.profilers.memory_watch import Watch

BETWEEN_S = 1.0
_HELD_PER_BYTE = 6
"""What a recorder holds at least for each byte that it gives when it is stopped."""
BOOKED_S = 2.0
"""Runs stand in the profile this long after they ended, so that who looks while the program runs sees them."""
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
        self._lock = threading.RLock()
        """Held while the profiler is started or stopped, never while a run is waited for."""
        self._adding = threading.Lock()
        """Held while what a window has seen is added up; none is opened meanwhile."""
        self._changing = False
        """Whether a thread is between starting the profiler and knowing it started, or the same of stopping."""
        self.begun: list[Any] = []
        """The session that is open. `begin_session` puts it here in the same step of the interpreter that starts it, so
        that a signal handler finds it."""
        self._session: Any = None
        """The same, as soon as everything about it is known."""
        self._theirs: dict[int, Any] = {}
        """Weak references to the program's sessions that have not ended, by `id`."""
        self.session_type: Any = None
        """The framework's own class of sessions, where what the program finds in its place is ours."""
        self._watch = Watch(self._give_up)
        self._opened_s = 0.0
        self._next_s = 0.0
        self._began_s = time.monotonic()
        self._first_runs_s = 0.0
        self._for_first_run = False
        self.off = ""
        """Why there are no windows; empty while there are."""
        self.off_quietly = False
        """Whether it depends on what comes if that is a loss, so that whoever made these windows says it."""
        self.count = 0
        self.given_up = 0
        """Windows that recorded more than may be held."""
        self.cost_s = 0.0
        self.open_s = 0.0
        self._booked = (0, 0)
        self.book_next_s = 0.0
        """When, of `time.monotonic`, runs are put in that no window has been opened for."""

    def begin_session(self) -> None:
        """Start the profiler and put its session into `begun`; nothing where it is in use. Where it cannot be used at
        all, sets `off` or raises."""
        raise NotImplementedError

    def last_run(self, output: Any) -> None:
        """The window ends now: wait for what must be in it."""

    def is_whole(self) -> bool:
        """Whether what must be in the window is there already."""
        return True

    def stop(self, session: Any) -> Any:
        """Stop the profiler; what it has seen."""
        raise NotImplementedError

    def add_up(self, seen: Any) -> None:
        """Take in what `stop` gave."""
        raise NotImplementedError

    def discard(self, session: Any) -> int:
        """Stop the profiler and forget what it has seen; how many bytes that was."""
        raise NotImplementedError

    def settle(self, output: Any) -> None:
        """A session for the trace window is about to begin: wait for what must not be in it."""

    def make_way(self, theirs: Any) -> None:
        """`theirs`, of the program's, is about to begin a session: our window is closed, and none is opened until
        `ended` is called with it, or it is no more."""
        key, forget = id(theirs), self._theirs.pop
        self._theirs[key] = weakref.ref(theirs, lambda _: forget(key, None))
        with self._lock:
            began_s = time.monotonic()
            if not self.begun:
                return
            if self._traces or self.is_whole():
                seen = self._end_and_keep()
            else:
                seen = None
                self._end(self.discard)
                self._count_cost(time.monotonic() - began_s)
        if seen is not None:
            self._add_up(seen, began_s)

    def ended(self, theirs: Any) -> None:
        """What was begun after `make_way` records no more."""
        self._theirs.pop(id(theirs), None)

    def finish(self) -> None:
        """No window from now on, whatever other threads are about to do."""
        self.close()
        self.make_way(self)

    def may_open(self) -> bool:
        """Whether there are windows at all at this time."""
        return not self.off and not self._theirs

    def end_for_good(self, why: str) -> None:
        """No more windows after this one, for this reason."""
        self.off = why
        self._loss(why)

    def close(self, output: Any = None) -> None:
        """End the window that is open, if any, and add up what was in it."""
        session = self._session
        if session is None:
            return
        self.last_run(output)
        if not self._lock.acquire(blocking=False):
            return
        try:
            began_s = time.monotonic()
            seen = self._end_and_keep() if self._session is session else None
        finally:
            self._lock.release()
        if seen is not None:
            self._add_up(seen, began_s)

    def stepped(self) -> None:
        """A step ends here; the trace window may have begun with it, or ended."""
        try:
            if self._trace_turns():
                self._turn(None)
        except Exception as error:
            self._loss(f"What {self.PROFILER} runs could not be followed into the trace window ({error!r}).")

    def book_with(self, put_in: Callable[[], object]) -> None:
        """Have the runs so far put in where there is more to tell of them, or it is time."""
        told, began_s = (self.count, self.given_up), time.monotonic()
        if told == self._booked and began_s < self.book_next_s:
            return
        self._booked = told
        put_in()
        ended_s = time.monotonic()
        self.book_next_s = ended_s + max(BOOKED_S, (ended_s - began_s) / self.COST_SHARE)

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
            self._next_s = time.monotonic() + BETWEEN_S
            return
        try:
            if self.may_open() and not (self.begun or self._changing or self._adding.locked()):
                self._begin(first_run)
        finally:
            self._lock.release()

    def _begin(self, first_run: bool) -> None:
        self._changing = True
        try:
            self.begin_session()
        except Exception as error:
            self.off = (
                f"{self.PROFILER}'s profiler could not be used, so operations have counts and no times ({error})."
            )
        if self.off and not self.off_quietly:
            self._loss(self.off)
        self._for_first_run = first_run
        self._opened_s = time.monotonic()
        self._session = next(iter(self.begun), None)
        if self._session is None:
            self._next_s = time.monotonic() + BETWEEN_S
        else:
            self._watch.begin()
        self._changing = False

    def _end(self, take: Callable[[Any], Any]) -> Any:
        """With the lock held: the profiler is stopped and `take` says what it gave; None where it did not run. The
        session is known until it has been stopped, so that who comes in between stops it as well; one of the two gets
        nothing, or an error."""
        if not self.begun:
            self._session = None
            return None
        session, changing = self.begun[0], self._changing
        self.open_s += time.monotonic() - self._opened_s
        self._changing = True
        try:
            return take(session)
        except Exception as error:
            if not changing and self.begun:  # else it was stopped twice
                self._loss(f"A window of {self.PROFILER}'s profiler was lost ({error!r}).")
            return None
        finally:
            self._changing = changing
            self._session = None
            self.begun = []
            self._watch.end()

    def _end_and_keep(self) -> Any:
        """The same; what is not None is to be given to `_add_up`, and no window is opened before."""
        seen = self._end(self.stop)
        return seen if seen is not None and self._adding.acquire(blocking=False) else None

    def _add_up(self, seen: Any, began_s: float) -> None:
        try:
            self.add_up(seen)
        except Exception as error:
            self._loss(f"A window of {self.PROFILER}'s profiler could not be added up ({error!r}).")
        finally:
            self._count_cost(time.monotonic() - began_s)
            self._adding.release()

    def _count_cost(self, took_s: float) -> None:
        self.cost_s += took_s
        if self._for_first_run:
            self._first_runs_s += took_s
        else:
            self._next_s = time.monotonic() + max(BETWEEN_S, took_s / self.COST_SHARE)

    def _give_up(self, grown: int) -> None:
        """Called beside the program: what runs may go on for long, so the profiler is stopped within it."""
        with self._lock:
            if not self.begun:
                return
            began_s = time.monotonic()
            recorded = self._end(self.discard) or 0
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
