"""Who makes the batches of a loader without workers: the data set's own methods and the function that joins samples,
and how long the latter takes, which calls no operator as a rule.

Promise: two clock readings a batch; a loader's iterator that outlives the session only calls through.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

_ITEMS = ("__getitems__", "__getitem__", "__iter__")
_MOST = 16


class BatchMakers:
    """By data set, kept as the address that it had."""

    def __init__(self) -> None:
        self._made: dict[int, dict[str, Any]] = {}
        self._running = True

    def stop(self) -> None:
        """From now on nothing is timed."""
        self._running = False

    def forked(self) -> None:
        """In the child: the parent's batches are the parent's to tell."""
        self._made.clear()

    def follow(self, iterator: Any) -> None:
        """To be called with the iterator of a pass over the data when its first batch is asked for."""
        fetcher: Any = getattr(iterator, "_dataset_fetcher", None)
        join = getattr(fetcher, "collate_fn", None)
        data = getattr(fetcher, "dataset", None)
        if not self._running or not callable(join) or isinstance(join, _Timed) or data is None:
            return
        known = self._made.get(id(data))
        if known is None:
            if len(self._made) >= _MOST:
                return
            known = {"items": _place_of_items(data), "join": _place(join), "join_ns": 0, "batches": 0, "passes": 0}
            self._made[id(data)] = known
        known["passes"] += 1
        fetcher.collate_fn = _Timed(join, known, lambda: self._running)

    def facts(self) -> list[dict[str, Any]]:
        """For the process's record: data sets of which batches were made, with the places of who made them."""
        return [dict(one) for one in self._made.values() if one["batches"]]


class _Timed:
    """The function that joins samples; adds up what it takes while `running` says so."""

    def __init__(self, join: Callable[..., Any], known: dict[str, Any], running: Callable[[], bool]) -> None:
        self._join = join
        self._known = known
        self._running_now = running

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        began_ns = time.perf_counter_ns()
        try:
            return self._join(*arguments, **named)
        finally:
            if self._running_now():
                self._known["join_ns"] += time.perf_counter_ns() - began_ns
                self._known["batches"] += 1


def _place_of_items(data: Any) -> dict[str, Any]:
    kind = type(data)
    method = next((getattr(kind, name) for name in _ITEMS if callable(getattr(kind, name, None))), None)
    return _place(method) if method is not None else {}


def _place(function: Any) -> dict[str, Any]:
    """Name, file and first line; an object that is called has those of its class's method. Empty for what C made."""
    plain = inspect.unwrap(function)
    while isinstance(plain, functools.partial):
        plain = plain.func
    plain = getattr(plain, "__func__", plain)
    if not hasattr(plain, "__code__"):
        plain = vars(type(plain)).get("__call__")
    code = getattr(plain, "__code__", None)
    if code is None:
        return {}
    return {"name": getattr(plain, "__qualname__", code.co_name), "file": code.co_filename, "line": code.co_firstlineno}
