"""The one door to a framework's profiler: the class of its sessions and the function that starts its server.

Whatever begins a session (a public function, a context manager, a library that goes to the binding itself) takes the
class from where the binding has it, so a subclass put there meets all of them. Promises: our window is closed before a
session of the program begins and none is opened while it records; errors are those of the framework; `uninstall` puts
back what was found, and sessions made meanwhile go on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from leadline.capture.providers.profilers.windows import ProfilerWindows
from leadline.capture.providers.replaced import Replacements

_ENDS = ("stop", "export_to_tb")
"""What methods that end a session begin with."""


class Door:
    """Stands in a module of a framework, `binding`, that has `ProfilerSession` and perhaps `start_server`."""

    def __init__(self, windows: ProfilerWindows) -> None:
        self._windows = windows
        self._replaced = Replacements()

    def install(self, binding: Any, begins: str, served: str) -> None:
        """`begins`: the method in which a session begins. `served`: why there are no windows where there is a server.
        What this release does not have is left out."""
        session = vars(binding).get("ProfilerSession")
        if isinstance(session, type):
            self._windows.session_type = session
            self._put("ProfilerSession", binding, session, _announced(session, self._windows, begins))
        server = vars(binding).get("start_server")
        if callable(server):
            self._put("start_server", binding, server, _serving(server, self._windows, served))

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()

    def _put(self, name: str, binding: Any, original: Any, replacement: Any) -> None:
        self._replaced.everywhere(name, original, replacement)
        if vars(binding)[name] is original:  # a binding that is no module of its own name
            self._replaced.attribute(binding, name, replacement)


class _Server:
    """Stands for a server that is being started, as a session that has no end."""


def _announced(original: type, windows: ProfilerWindows, begins: str) -> type:
    """A class of sessions like `original` that tells when one begins and ends."""
    first = getattr(original, begins)

    @functools.wraps(first)
    def begin(this: Any, *arguments: Any, **named: Any) -> Any:
        windows.make_way(this)
        try:
            return first(this, *arguments, **named)
        except BaseException:
            windows.ended(this)
            raise

    def ending(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def end(this: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return method(this, *arguments, **named)
            finally:
                windows.ended(this)

        return end

    members = {name: ending(method) for name, method in vars(original).items() if name.startswith(_ENDS)}
    told = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__}
    return type(original)(original.__name__, (original,), {**told, **members, begins: begin})


def _serving(original: Callable[..., Any], windows: ProfilerWindows, why: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def start_server(*arguments: Any, **named: Any) -> Any:
        server = _Server()
        windows.make_way(server)
        result = original(*arguments, **named)
        windows.end_for_good(why)
        return result

    return start_server
