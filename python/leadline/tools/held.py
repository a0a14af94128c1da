"""About how much memory a tool holds: what its attributes lead to, large containers by samples of their elements."""

from __future__ import annotations

import itertools
import sys
import types
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

_SAMPLES = 32
"""Of a container with more elements so many are looked at, evenly spread, and stand for the others."""
_MOST_LOOKS = 20_000
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.FrameType)
_CONTAINERS = (list, tuple, set, frozenset, deque)


def held_bytes(values: Iterable[Any], not_counted: Collection[Any] = ()) -> int:
    """Bytes of what `values` lead to, each object once, without `not_counted` and what only those lead to."""
    look = _Look(not_counted)
    return int(sum(look.size(value) for value in values))


class _Look:
    def __init__(self, not_counted: Collection[Any]) -> None:
        self._seen = {id(one) for one in not_counted}
        self._looks = 0

    def size(self, value: Any) -> float:
        if id(value) in self._seen or self._looks >= _MOST_LOOKS or isinstance(value, _OPAQUE):
            return 0
        self._seen.add(id(value))
        self._looks += 1
        if isinstance(value, np.ndarray):
            return self._of_array(value)
        own = float(sys.getsizeof(value, 0))
        if isinstance(value, Mapping):
            return own + self._of_many(value.keys()) + self._of_many(value.values())
        if isinstance(value, _CONTAINERS):
            return own + self._of_many(value)
        return own + sum(self.size(one) for one in getattr(value, "__dict__", {}).values())

    def _of_array(self, array: np.ndarray[Any, Any]) -> float:
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner is not array:
            if id(owner) in self._seen:
                return 0
            self._seen.add(id(owner))
        return float(owner.nbytes) + self.size(getattr(array, "batch", None) or 0)

    def _of_many(self, values: Collection[Any]) -> float:
        step = max(1, len(values) // _SAMPLES)
        looked, found = 0, 0.0
        for one in itertools.islice(values, 0, None, step):
            looked += 1
            found += self.size(one)
        return found * len(values) / looked if looked else 0.0
