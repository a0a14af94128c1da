"""Threads of Leadline's inside the profiled program, and the flag that ends them.

Promises: the program does not meet them. `threading` does not know them, so they are in no list of the program's, and a
library that replaces `threading` while they run (gevent's monkey patching) finds nothing of theirs; they are threads of
the system even then. What they raise ends them and is printed nowhere.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Flag:
    """Is set once."""

    def __init__(self) -> None:
        self._lock = _original("allocate_lock")()
        self._lock.acquire()

    def set(self) -> None:
        """Whoever waits goes on. Safe in signal handlers."""
        with contextlib.suppress(RuntimeError):  # it is set
            self._lock.release()

    def is_set(self) -> bool:
        return not self._lock.locked()

    def wait(self, seconds: float = -1) -> bool:
        """Whether it is set, at the latest when so many seconds are over; without any when it is."""
        if not self._lock.acquire(timeout=min(max(seconds, 0), _thread.TIMEOUT_MAX) if seconds != -1 else -1):
            return False
        self.set()  # for the next one who waits
        return True


class OwnThread:
    """Ends with the process at the latest."""

    def __init__(self, target: Callable[..., object], *arguments: Any) -> None:
        self._target = target
        self._arguments = arguments
        self._ended = Flag()
        self.ident = 0

    def start(self) -> None:
        """Raises RuntimeError where the system has no room for another thread.

        It begins with all signals blocked: one that the program blocks on its own threads, to wait for it, would else
        be delivered here."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            with _named_as_ours():
                _original("start_new_thread")(self._run, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def is_alive(self) -> bool:
        """Of one that was started."""
        return not self._ended.is_set()

    def join(self, seconds: float = -1) -> bool:
        """Whether it has ended, at the latest when so many seconds are over. At once on the thread itself."""
        return self.ident == _original("get_ident")() or self._ended.wait(seconds)

    def _run(self) -> None:
        self.ident = _original("get_ident")()
        with contextlib.suppress(BaseException):
            self._target(*self._arguments)
        self._ended.set()


@contextlib.contextmanager
def _named_as_ours() -> Iterator[None]:
    """A thread that is begun inside has a name by which samplers of CPU time and waits tell it from the program's
    (native/providers/cpu) from its first moment: the system gives it that of the thread that begins it."""
    name = Path("/proc/thread-self/comm")
    before = None
    with contextlib.suppress(OSError):
        before = name.read_bytes()
        name.write_bytes(b"leadline-python")
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                name.write_bytes(before.removesuffix(b"\n"))


def _original(name: str) -> Any:
    """Of `_thread`, as the interpreter has it."""
    patched = sys.modules.get("gevent.monkey")
    if patched is not None:
        with contextlib.suppress(Exception):
            return patched.get_original("_thread", name)
    return getattr(_thread, name)
