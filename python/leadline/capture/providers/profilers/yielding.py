"""A vendor's library that serves one tool is torch.profiler's own while it records GPU work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer", bound=Any)

_RETRY_S = (0.0, 0.5, 2.0, 5.0)
"""How long after torch.profiler has stopped the library is asked for again: it lets go in its own time."""


class ProfilerYield(Generic[_Answer]):
    """Gives the library to torch.profiler while it records GPU work: it would take the records, and neither had all.

    Replaces two functions in `torch.autograd.profiler`, through which every torch profiler begins and ends.
    """

    _FUNCTIONS = ("_prepare_profiler", "_disable_profiler")

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
        self._originals: dict[str, tuple[Any, Any]] = {}
        self._yielded = False

    def install(self) -> None:
        """Replace the functions; does nothing where this torch has other ones."""
        if not all(hasattr(self._module, name) for name in self._FUNCTIONS):
            return
        prepare, disable = (getattr(self._module, name) for name in self._FUNCTIONS)

        def yielding_prepare(config: Any, activities: Any, *more: Any, **named: Any) -> Any:
            if self._cuda in activities and self._originals:
                self._yielded = True
                self._yield_to("torch.profiler")
            return prepare(config, activities, *more, **named)

        def resuming_disable(*arguments: Any, **named: Any) -> Any:
            try:
                return disable(*arguments, **named)
            finally:
                if self._yielded:
                    self._yielded = False
                    self._take_back(list(_RETRY_S))

        for name, wrapper in zip(self._FUNCTIONS, (yielding_prepare, resuming_disable), strict=True):
            self._originals[name] = (getattr(self._module, name), wrapper)
            setattr(self._module, name, wrapper)

    def uninstall(self) -> None:
        """Put the functions back, unless somebody else has replaced ours meanwhile."""
        for name, (original, wrapper) in self._originals.items():
            if getattr(self._module, name) is wrapper:
                setattr(self._module, name, original)
        self._originals.clear()

    def _take_back(self, delays: list[float]) -> None:
        delay = delays.pop(0)
        if delay > 0:
            timer = threading.Timer(delay, self._try_again, args=(delays,))
            timer.daemon = True
            timer.start()
        else:
            self._try_again(delays)

    def _try_again(self, delays: list[float]) -> None:
        if not self._originals or self._yielded:
            return
        answer = self._take()
        if delays and not answer["measuring"]:
            self._take_back(delays)
        else:
            self._changed(answer)
