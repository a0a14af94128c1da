"""How often a loader starts its workers anew, and how long a pass over the data waits for that: starting the processes,
and the first batch, which no worker has made yet.

Promise: two clock readings for a pass and two for its first batch, none for the others.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

_MOST = 16
MOST_OBJECTS = 10_000


class LoaderPasses:
    """By data set, kept as the address that it had; workers that stay for the next pass count once."""

    def __init__(self) -> None:
        self._made: dict[int, dict[str, int]] = {}
        self._waiting: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
        self._running = True

    def stop(self) -> None:
        """From now on nothing is timed."""
        self._running = False

    def forked(self) -> None:
        """In the child: the parent's passes are the parent's to tell."""
        self._made.clear()
        self._waiting.clear()

    def starting(self, original: Callable[..., None]) -> Callable[..., None]:
        """To stand for `__init__` of the iterator that starts workers."""

        @functools.wraps(original)
        def started(iterator: Any, loader: Any, *arguments: Any, **named: Any) -> None:
            began_ns = time.perf_counter_ns()
            original(iterator, loader, *arguments, **named)
            taken_ns = time.perf_counter_ns() - began_ns
            with contextlib.suppress(Exception):  # a loader of the program's own may be anything
                self._begun(iterator, id(loader.dataset), taken_ns)

        return started

    def _begun(self, iterator: Any, data: int, taken_ns: int) -> None:
        if self._running and (data in self._made or len(self._made) < _MOST):
            known = self._made.setdefault(data, {"starts": 0, "start_ns": 0, "first_ns": 0})
            known["starts"] += 1
            known["start_ns"] += taken_ns
            self._waiting[iterator] = known

    def first_of(self, iterator: Any) -> dict[str, int] | None:
        """Where the wait for an iterator's first batch is added up, once; None for every later batch."""
        return self._waiting.pop(iterator, None) if self._waiting and self._running else None

    def facts(self) -> list[dict[str, int]]:
        """For the process's record: `starts` of all workers, what they took and what their first batches were waited
        for, in ns; `tensors` of a first batch."""
        return [dict(one) for one in self._made.values()]


def tensors_in(batch: Any) -> int:
    """How many tensors there are among the first objects of a batch's lists, tuples and dictionaries."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", ())
    found, left = 0, [batch]
    for _ in range(MOST_OBJECTS):
        if not left:
            break
        one = left.pop()
        if isinstance(one, tensor):
            found += 1
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return found
