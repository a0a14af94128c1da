"""The border between Leadline and the profiled program: no exception of ours crosses it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final, cast

from leadline.capture.messages import say
from leadline.capture.native import Native


class contained(contextlib.AbstractContextManager[None]):
    """Turns an exception into a counted loss: the profiled program must not see it."""

    def __init__(self, native: Native | None, what: str) -> None:
        self._native = native
        self._what = what

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        sentence = f"{self._what}: {type(error).__name__}: {error}"
        if self._native is not None:
            with contextlib.suppress(Exception):
                self._native.count_loss("internal_error", 1, sentence)
        say(sentence)
        return True


_INSTEAD: Final[dict[str, object]] = {
    "phase_begin": 0,
    "phase_end": None,
    "region_begin": 0,
    "region_end": None,
    "region_suspend": 0,
    "waited": None,
    "step": None,
    "step_begin": None,
    "optimizer_follows": None,
    "place": 0,
    "thread_place": 0,
    "book": 0,
    "timed": False,
    "trace_is_open": False,
    "callpath": (),
    "cpu_thread_begins": None,
    "module_register": None,
    "module_forget": None,
    "module_forget_all": None,
}
"""What hooks in the program call, and what they get where it fails."""


class _Contained:
    """The native module for hooks: what they call of it does not raise."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._native, name)
        made = _never_raising(self._native, name, real) if name in _INSTEAD else real
        setattr(self, name, made)
        return made


def for_hooks(native: Native) -> Native:
    """The native module as providers get it."""
    return cast(Native, _Contained(native))


def lose(native: Native, what: str, error: Exception) -> None:
    """Count what `error` has cost. Raises nothing and says nothing: the program is in the middle of something."""
    with contextlib.suppress(Exception):
        native.count_loss("internal_error", 1, f"{what}: {type(error).__name__}: {error}")


def _never_raising(native: Native, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    instead = _INSTEAD[name]

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return real(*arguments, **named)
        except Exception as error:
            lose(native, f"A hook could not measure ({name})", error)
            return instead

    return call
