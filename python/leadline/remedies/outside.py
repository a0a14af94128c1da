"""What a program does outside of its working directory: ports that it opens, files that it writes.

An audit hook costs each audited call a microsecond, so only the first run, which is not timed, has one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

_MOST = 20
_NO_FILES = ("/dev/", "/proc/", "/sys/")
_CACHES = ("/.cache/", "/.triton/", "/.nv/", "/__pycache__/", "/.config/matplotlib")
_WRITES = os.O_WRONLY | os.O_RDWR
_CHANGES = {"os.rename": 1, "os.remove": 0, "os.mkdir": 0, "shutil.rmtree": 0}


class Outside:
    """One per process; the interpreter keeps the hook until its end."""

    def __init__(self, inside: str, own: str) -> None:
        temporary = os.path.realpath(tempfile.gettempdir())
        self._inside = tuple(f"{os.path.realpath(one)}/" for one in (inside, own))
        self._temporary = temporary + "/"
        self.ports: list[str] = []
        self.files: list[str] = []

    def start(self) -> None:
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event == "open":
                path, _, flags = arguments
                if isinstance(path, str) and flags & _WRITES:
                    self._written(path)
            elif event == "socket.bind":
                address = arguments[1]
                if isinstance(address, tuple) and len(address) >= 2 and address[1]:
                    _add(self.ports, str(address[1]))
            elif event in _CHANGES:
                path = arguments[_CHANGES[event]]
                if isinstance(path, str):
                    self._written(path)
        except Exception:
            return  # a path that is none, an address of an unknown family

    def _written(self, path: str) -> None:
        full = os.path.realpath(path)
        if full.startswith((*self._inside, *_NO_FILES, self._temporary)) or any(one in full for one in _CACHES):
            return
        _add(self.files, full)


def _add(to: list[str], what: str) -> None:
    if what not in to and len(to) < _MOST:
        to.append(what)
