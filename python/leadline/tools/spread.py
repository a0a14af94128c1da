"""Values over a run whose length nobody knows: rows of cells that stand for twice as much each time they run out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Spread:
    """Sums (`combine=np.add`) or greatest values (`np.maximum`), none below 0, by row and position; at most `cells` a
    row. A cell is `width` positions."""

    def __init__(self, cells: int, combine: np.ufunc) -> None:
        self.width = 1
        self._limit = max(2, cells + cells % 2)
        self._combine = combine
        self._values = np.zeros((16, self._limit))
        self._used = 0

    def add(self, rows: NDArray[np.int64], positions: NDArray[np.int64], values: Any) -> None:
        """Take a value at each row and position in."""
        if not len(rows):
            return
        self._make_room(int(rows.max()), int(positions.max()))
        self._combine.at(self._values, (rows, positions // self.width), values)

    def column(self, position: int, values: NDArray[Any]) -> None:
        """Take a value of each row in, from the first row on, at one position."""
        self._make_room(len(values) - 1, position)
        cells = self._values[: len(values), position // self.width]
        self._combine(cells, values, out=cells)

    def lift(self, row: int, position: int, value: float) -> None:
        """As `add` of one greatest value, where there is room for this row and cell already."""
        cell = position // self.width
        if self._values[row, cell] < value:
            self._values[row, cell] = value

    def cells(self, rows: Any = slice(None)) -> NDArray[np.float64]:
        """The values of some rows (all: as many as there is room for), up to the last position that was added."""
        return self._values[rows, : self._used // self.width + 1]

    def _make_room(self, row: int, position: int) -> None:
        while position // self.width >= self._limit:
            self._values[:, : self._limit // 2] = self._combine(self._values[:, ::2], self._values[:, 1::2])
            self._values[:, self._limit // 2 :] = 0
            self.width *= 2
        if row >= len(self._values):
            more = np.zeros((max(row + 1, 2 * len(self._values)) - len(self._values), self._limit))
            self._values = np.concatenate([self._values, more])
        self._used = max(self._used, position)
