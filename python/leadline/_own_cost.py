"""What measuring costs a program, from what it says of its own calls.

The time inside them is measured. What each costs beside them is not: a framework must call them, with the inputs of
operators where shapes are recorded, and the program fetches data and code again that they drove out of the caches.
For events that come one after the other that is about the same for each; where much is computed between them, what
they need is fetched from memory again too, and the time inside tells how much (bench/results/own_cost.md).
"""

from __future__ import annotations

from collections.abc import Mapping

BESIDE_NS = 200.0
WITH_INPUTS_NS = 450.0
"""Of an event beside our calls, without and with the inputs of operators; on one processor of 2024, with torch 2.13."""
BESIDE = 1.2
"""Of the time inside our calls: what they cost beside them, where that is more."""
_MOST = 0.95
"""Of a run's time; what is stated beyond is of several threads."""


def with_beside_ns(calls_ns: float, events: float, shapes: bool) -> float:
    """What events cost that took `calls_ns` inside our calls. `shapes`: inputs of operators are recorded."""
    return calls_ns + max(BESIDE * calls_ns, (WITH_INPUTS_NS if shapes else BESIDE_NS) * events)


def cost_ns(cost: Mapping[str, int], shapes: bool) -> float:
    """Of a process since it began, in ns, from what the native side tells (`Stats.cost`): calls, what they cost beside
    them, and writing."""
    spent = with_beside_ns(int(cost.get("callbacks_ns", 0)), int(cost.get("events", 0)), shapes)
    return spent + int(cost.get("flush_ns", 0))


def slower_by(share: float) -> float:
    """By how much a run is longer than without measuring, as a share of the latter. `share`: of the run's time that
    measuring took."""
    whole = min(max(share, 0.0), _MOST)
    return whole / (1 - whole)
