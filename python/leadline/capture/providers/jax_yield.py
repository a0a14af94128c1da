"""XLA has one profiler session per process, and the program's own goes first.

Before the program starts a session our window is closed, and none is opened while theirs records. A profiler server
starts sessions whenever somebody asks it from outside, so where there is one we open no windows at all. Promise: a
session of the program never fails because of ours; `uninstall` leaves JAX as it was found.
"""

from __future__ import annotations

from leadline.capture.providers import jax_places
from leadline.capture.providers.jax_windows import Windows
from leadline.capture.providers.replaced import Replacements

_SERVER = (
    "The program started JAX's profiler server, which may begin a session at any moment, so operations are not timed "
    "from there on; their counts go on."
)


class Yielding:
    """Replaces what begins a session of JAX's profiler."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._replaced = Replacements()

    def install(self) -> None:
        """What this release does not have is left out."""
        module = jax_places.member("jax._src.profiler")
        for name, for_good in (("start_trace", ""), ("start_server", _SERVER)):
            original = getattr(module, name, None)
            if original is not None:
                first = self._windows.closed_before(original, for_good=for_good)
                self._replaced.everywhere(name, original, first)
        session = getattr(module, "ProfileSession", None)  # since 0.12
        start = vars(session).get("start") if isinstance(session, type) else None
        if start is not None:
            self._replaced.attribute(session, "start", self._windows.closed_before(start))

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()
