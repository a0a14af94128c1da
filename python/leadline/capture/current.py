"""The one session a process can have.

Process-wide state is the nature of the thing: hooks of the interpreter (`os.register_at_fork`, `atexit`) reach a
session only through a name that outlives it. It is held in this one object.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leadline.capture.native import Native
    from leadline.capture.session import Session


class CurrentSession:
    """Holds the running session, if there is one, and what the hot paths need of it."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.native: Native | None = None
        """The native module while a session runs; what `region` and `step` look at."""
        self.generation = 0
        """Counts sessions, so that a region never ends in a session that it did not begin in."""
        self.hooks_installed = False
        """`os.register_at_fork` and `atexit` have no way back that is safe in a forked child, so they are used once."""
        self.from_outside = False
        """Whether the session was begun in a program that ran already and knows nothing of it (`leadline attach`)."""
        self.nested = 0
        """How often `leadline.start` was called while it measured: as many calls of `leadline.stop` end nothing."""
        self.lock = threading.RLock()
        """Held by start and stop, never by an event."""

    def set(self, session: Session, native: Native) -> None:
        """A session has started."""
        self.session = session
        self.nested = 0
        self.generation += 1
        self.native = native

    def clear(self) -> None:
        """The session has ended."""
        self.native = None
        self.session = None

    def renew_lock(self) -> None:
        """In a forked child: the lock is held from before the fork, by a thread that has another number here."""
        self.lock = threading.RLock()


CURRENT: Final = CurrentSession()
