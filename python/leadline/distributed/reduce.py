"""A stream of folds as one, holding few of them: four of one size become one of the next, as a counter carries.

Joining is associative and commutative, so who comes when cannot show. With n folds about 3 log4(n) are held at most.
"""

from __future__ import annotations

from leadline.profiles.fold.join import join
from leadline.profiles.fold.state import Fold

_FAN_IN = 4


class Reducer:
    """Give it folds; ask for the whole."""

    def __init__(self) -> None:
        self._levels: list[list[Fold]] = []

    def add(self, fold: Fold) -> None:
        """One more."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            here = self._levels[level]
            here.append(fold)
            if len(here) < _FAN_IN:
                return
            fold = join(here)
            self._levels[level] = []
            level += 1

    def whole(self) -> Fold | None:
        """All that were given, as one; None for none."""
        left = [fold for level in self._levels for fold in level]
        self._levels = []
        return join(left) if left else None
