"""What measuring costs a program, from what it says of its own calls.

The time inside them is measured. As much again is spent beside them: a framework must call them, and the program
fetches data and code again that they drove out of the caches. On tiny operators the time inside is 0.4 of what is added
(bench/results/own_cost.md), so what is stated is rather too low there.
"""

from __future__ import annotations

from collections.abc import Mapping

BESIDE = 1.0
"""Time that calls cost outside of them, as a multiple of the time inside."""
_MOST = 0.95
"""Of a run's time; what is stated beyond is of several threads."""


def cost_ns(cost: Mapping[str, int]) -> float:
    """Of a process since it began, in ns, from what the native side tells (`Stats.cost`): calls, what they cost beside
    them, and writing."""
    return (1 + BESIDE) * int(cost.get("callbacks_ns", 0)) + int(cost.get("flush_ns", 0))


def slower_by(share: float) -> float:
    """By how much a run is longer than without measuring, as a share of the latter. `share`: of the run's time that
    calls took."""
    whole = min(max((1 + BESIDE) * share, 0.0), _MOST)
    return whole / (1 - whole)
