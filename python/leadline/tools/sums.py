"""What a tool adds up: counts by number, and sums by number. Memory grows with distinct keys, never with rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.batch import Column

_COMPACT_AT = 1 << 20


class Counter:
    """How often each number came. `ref`: what the numbers stand for, taken from the first column added."""

    def __init__(self) -> None:
        self.ref = ""
        self.counts: dict[int, int] = {}
        self.first_place: dict[int, int] = {}

    def add(self, keys: NDArray[np.int64], weight: NDArray[np.int64] | None = None) -> None:
        """One for each key, or its weight."""
        keys = np.asanyarray(keys)
        self.ref = self.ref or getattr(keys, "ref", "")
        distinct, first, inverse = np.unique(np.asarray(keys), return_index=True, return_inverse=True)
        counted = np.bincount(inverse, None if weight is None else np.asarray(weight, np.float64), len(distinct))
        batch = keys.batch if isinstance(keys, Column) else None
        places = np.asarray(batch["place"]) if batch is not None and "place" in batch else None
        for key, count, row in zip(distinct.tolist(), counted.tolist(), first.tolist(), strict=True):
            if key not in self.counts:
                self.counts[key] = 0
                if places is not None:
                    self.first_place[key] = int(places[row])
            self.counts[key] += int(count)


class Sums:
    """Sums of several fields by number."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields
        self.ref = ""
        self._chunks: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]] = []
        self._rows = 0

    def add(self, keys: NDArray[np.int64], **values: Any) -> None:
        """Add each row's values at its key; a field that is left out adds nothing."""
        unknown = set(values) - set(self.fields)
        if unknown:
            raise KeyError(f"these sums have no field {unknown.pop()!r}; they have {', '.join(self.fields)}")
        self.ref = self.ref or getattr(keys, "ref", "")
        plain = np.asarray(keys, np.int64)
        rows = {
            field: np.broadcast_to(np.asarray(values.get(field, 0), np.float64), plain.shape) for field in self.fields
        }
        self._chunks.append((plain, rows))
        self._rows += len(plain)
        if self._rows > _COMPACT_AT:
            self._compact()

    def _compact(self) -> None:
        keys = np.concatenate([chunk[0] for chunk in self._chunks]) if self._chunks else np.empty(0, np.int64)
        distinct, inverse = np.unique(keys, return_inverse=True)
        summed = {
            field: np.bincount(inverse, np.concatenate([chunk[1][field] for chunk in self._chunks]), len(distinct))
            if len(keys)
            else np.empty(0)
            for field in self.fields
        }
        self._chunks = [(distinct, summed)]
        self._rows = len(distinct)

    def keys(self) -> NDArray[np.int64]:
        """The distinct keys, ascending."""
        self._compact()
        return self._chunks[0][0]

    def totals(self) -> Mapping[str, NDArray[np.float64]]:
        """For every field its sums, in the order of `keys`."""
        self._compact()
        return self._chunks[0][1]
