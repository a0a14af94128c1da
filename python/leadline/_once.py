"""A function of one object whose answer is kept with the object, for what never changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")


def once(make: Callable[[_Subject], _Answer]) -> Callable[[_Subject], _Answer]:
    """`make`, called for an object only the first time it is asked for; nobody writes to the answer."""
    key = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def kept(subject: _Subject) -> _Answer:
        known = vars(subject)
        if key not in known:
            known[key] = make(subject)
        answer: _Answer = known[key]
        return answer

    return kept
