"""A vendor's library that serves one tool is torch.profiler's own while it records GPU work."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer", bound=Any)

_RETRY_S = (0.0, 0.5, 2.0, 5.0)
"""How long after torch.profiler has stopped the library is asked for again: it lets go in its own time."""


class ProfilerYield(Generic[_Answer]):
    """Gives the library to torch.profiler while it records GPU work: it would take the records, and neither had all.

    Replaces two functions in `torch.autograd.profiler`, through which every torch profiler begins and ends, and two of
    torch's monitor of CUPTI, where there is one.
    """

    _FUNCTIONS = ("_prepare_profiler", "_disable_profiler")
    _MONITOR = "torch.profiler._cupti_monitor"

    def __init__(
        self,
        yield_to: Callable[[str], None],
        take_back: Callable[[], _Answer],
        torch: ModuleType,
        changed: Callable[[_Answer], None],
    ) -> None:
        self._yield_to = yield_to
        self._take = take_back
        self._changed = changed
        self._module: Any = torch.autograd.profiler
        self._cuda = torch.autograd.ProfilerActivity.CUDA
        self._originals: list[tuple[Any, str, Any, Any]] = []
        self._users: set[object] = set()

    def install(self) -> None:
        """Replace the functions; does nothing where this torch has other ones."""
        if not all(hasattr(self._module, name) for name in self._FUNCTIONS):
            return
        prepare, disable = (getattr(self._module, name) for name in self._FUNCTIONS)

        def yielding_prepare(config: Any, activities: Any, *more: Any, **named: Any) -> Any:
            if self._cuda in activities:
                self._begins(self)
            return prepare(config, activities, *more, **named)

        def resuming_disable(*arguments: Any, **named: Any) -> Any:
            try:
                return disable(*arguments, **named)
            finally:
                self._ends(self)

        for name, wrapper in zip(self._FUNCTIONS, (yielding_prepare, resuming_disable), strict=True):
            self._replace(self._module, name, wrapper)
        self._follow_monitor()

    def uninstall(self) -> None:
        """Put the functions back, unless somebody else has replaced ours meanwhile."""
        for owner, name, original, wrapper in self._originals:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)
        self._originals.clear()

    def _follow_monitor(self) -> None:
        try:
            kind: Any = importlib.import_module(self._MONITOR).CuptiMonitor
            start, stop = kind.start, kind.stop
        except Exception:  # this torch has none, or another one
            return

        @functools.wraps(start)
        def yielding_start(monitor: Any) -> Any:
            runs = id(monitor) in self._users
            self._begins(id(monitor))
            try:
                return start(monitor)
            except BaseException:
                if not runs:
                    self._ends(id(monitor))
                raise

        @functools.wraps(stop)
        def resuming_stop(monitor: Any) -> Any:
            try:
                return stop(monitor)
            finally:
                self._ends(id(monitor))

        self._replace(kind, "start", yielding_start)
        self._replace(kind, "stop", resuming_stop)

    def _replace(self, owner: Any, name: str, wrapper: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name), wrapper))
        setattr(owner, name, wrapper)

    def _begins(self, user: object) -> None:
        if self._originals:
            self._users.add(user)
            self._yield_to("torch.profiler")

    def _ends(self, user: object) -> None:
        if user in self._users:
            self._users.discard(user)
            if not self._users:
                self._take_back(list(_RETRY_S))

    def _take_back(self, delays: list[float]) -> None:
        delay = delays.pop(0)
        if delay > 0:
            timer = threading.Timer(delay, self._try_again, args=(delays,))
            timer.daemon = True
            timer.start()
        else:
            self._try_again(delays)

    def _try_again(self, delays: list[float]) -> None:
        if not self._originals or self._users:
            return
        answer = self._take()
        if delays and not answer["measuring"]:
            self._take_back(delays)
        else:
            self._changed(answer)
