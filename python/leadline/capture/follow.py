"""Following children, and the ways to leave a process that Python's `atexit` does not see.

- a forked child goes on measuring in its own segment (`os.register_at_fork`);
- a spawned one starts by itself, from the variables set here (`_autostart`);
- `os._exit` (every forked multiprocessing worker ends so) and the exec family flush first.

Promise: `uninstall` leaves `os` and the environment as they were found.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from signal import SIGKILL
from typing import Any, NoReturn

from leadline.capture.config import VARIABLES
from leadline.capture.providers.replaced import Replacements


class Follower:
    """The hooks of one session in one process. `on_exit` gets the exit status; `on_exec` comes before another image,
    `on_exec_failed` when there is none, `on_kill` before another process gets a SIGKILL."""

    def __init__(
        self,
        on_exit: Callable[[int], None],
        on_exec: Callable[[], None],
        on_exec_failed: Callable[[], None],
        on_kill: Callable[[int], None],
    ) -> None:
        self._on_kill = on_kill
        self._on_exit = on_exit
        self._on_exec = on_exec
        self._on_exec_failed = on_exec_failed
        self._replaced: Replacements | None = None
        self._environment_before: dict[str, str | None] = {}
        self._children_find: Mapping[str, str] = {}

    def install(self, environment: Mapping[str, str]) -> None:
        """Wrap `os._exit` and the exec functions, and set all of VARIABLES for children; absent ones are removed."""
        self._children_find = environment
        self._replaced = Replacements()
        self._wrap("_exit", self._exit_wrapper)
        self._wrap("execv", self._exec_wrapper)  # every other exec function of `os` ends in one of these two
        self._wrap("execve", self._exec_wrapper)
        self._wrap("kill", self._kill_wrapper)  # multiprocessing, subprocess and psutil end their children with it
        for name in VARIABLES:
            self._environment_before[name] = os.environ.get(name)
            _set_variable(name, environment.get(name))

    def uninstall(self) -> None:
        """Undo `install`. A wrapper that somebody else has wrapped in turn stays and only calls through."""
        self._unwrap()
        for name, value in self._environment_before.items():
            _set_variable(name, value)
        self._environment_before.clear()

    def abandon(self) -> None:
        """In a forked child that is not followed: `os` as it was found; the environment stays that of a child."""
        self._unwrap()
        self._environment_before.clear()

    @property
    def installed(self) -> bool:
        """Whether the hooks are in place."""
        return self._replaced is not None

    def _wrap(self, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        if self._replaced is not None:
            self._replaced.attribute(os, name, make(getattr(os, name)))

    def _unwrap(self) -> None:
        if self._replaced is not None:
            self._replaced.undo()
        self._replaced = None

    def _exit_wrapper(self, original: Callable[[int], NoReturn]) -> Callable[..., NoReturn]:
        @functools.wraps(original)
        def _exit(status: int) -> NoReturn:
            if self.installed and isinstance(status, int):
                self._on_exit(status)
            original(status)

        return _exit

    def _kill_wrapper(self, original: Callable[[int, int], None]) -> Callable[[int, int], None]:
        @functools.wraps(original)
        def kill(pid: int, signal: int, /) -> None:
            if signal == SIGKILL and self.installed and pid != os.getpid():
                self._on_kill(pid)
            original(pid, signal)

        return kill

    def _exec_wrapper(self, original: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        @functools.wraps(original)
        def _exec(*arguments: Any, **named: Any) -> NoReturn:
            if not self.installed:
                original(*arguments, **named)
            self._on_exec()
            self._set_own_environment()
            try:
                original(*arguments, **named)
            finally:  # no program, no permission, ...
                self._set_childrens_environment()
                self._on_exec_failed()

        return _exec

    def _set_own_environment(self) -> None:
        """Exec makes no child: what is measured without its children is measured on."""
        if not self._children_find:
            for name, value in self._environment_before.items():
                _set_variable(name, value)

    def _set_childrens_environment(self) -> None:
        for name in self._environment_before:
            _set_variable(name, self._children_find.get(name))


def is_own_thread() -> bool:
    """Whether this is a thread of ours, such as a tool's: a child that it forks is none of the program's."""
    return "leadline_own" in vars(threading.current_thread())


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
