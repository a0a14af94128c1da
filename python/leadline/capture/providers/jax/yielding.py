"""XLA has one profiler session per process, and the program's own goes first.

JAX's functions, its context managers and whoever uses jaxlib by himself all begin a session with jaxlib's class. A
profiler server starts sessions in C++ whenever somebody asks it from outside, so where there is one we open no windows
at all. Promise: a session of the program never fails because of ours; `uninstall` leaves JAX as it was found.
"""

from __future__ import annotations

from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.windows import Windows
from leadline.capture.providers.profilers.door import Door

_SERVER = (
    "The program started JAX's profiler server, which may begin a session at any moment, so operations are not "
    "timed after that; they are still counted."
)


class Yielding:
    """Puts a door in the place of what begins a session of JAX's profiler."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._door = Door(windows)

    def install(self) -> None:
        """What this release does not have is left out."""
        binding = jax_places.profiler()
        if binding is not None:
            self._door.install(binding, "__init__", _SERVER)
        if jax_places.member("jax._src.profiler._profiler_server") is not None:
            self._windows.end_for_good(_SERVER)

    def uninstall(self) -> None:
        """Undo `install`."""
        self._door.uninstall()
