"""What measuring may cost a training loop: whole steps are left out where it would cost more.

Every step brings its share of wall time as an allowance, and what measuring has cost is taken from it. While it is used
up steps rest, so a step is measured whole or not at all, and the mean cost of a run stays at the budget, whatever its
steps are made of. How long a rest lasts is drawn at random around what it must be, so that nothing which the loop does
every so many steps is always met, or never.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

ROLLING_PERCENT = 0.8
"""Where files are rolled, which is for profiles of every run; 1 is promised, the rest is what nobody counts."""
_SAVED_STEPS = 20
"""So many measured steps may follow each other after a stretch that cost nothing, such as an evaluation."""


class StepBudget:
    """`percent` of wall time. `cost`: of the process since some moment, in ns; it may begin at zero again."""

    def __init__(self, percent: float, cost: Callable[[], float], now: Callable[[], int] = time.monotonic_ns) -> None:
        self._share = percent / 100
        self._cost = cost
        self._now = now
        self._draw = random.Random(now()).random  # the program's own stays as it is
        self._last_ns = now()
        self._last_cost = cost()
        self._credit = 0.0
        self._of_step = 0.0
        """What a measured step costs, as far as it is known."""
        self._wanted = 0.0

    def next_is_measured(self, measured: bool) -> bool:
        """A step has ended, which was `measured` or not: whether the next one is."""
        now, cost = self._now(), self._cost() if measured else self._last_cost
        spent = max(cost - self._last_cost, 0.0)
        if measured:
            self._of_step += (spent - self._of_step) / (4 if self._of_step else 1)
        self._credit += self._share * (now - self._last_ns) - spent
        self._credit = min(self._credit, _SAVED_STEPS * self._of_step)
        self._last_ns, self._last_cost = now, cost
        if measured and self._credit < 0:
            self._wanted = self._draw() * self._of_step
        return self._credit >= (0.0 if measured else self._wanted)
