"""The border between Leadline and the profiled program: no exception of ours crosses it."""

from __future__ import annotations

import contextlib

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
