"""Frames and totals of a framework put below a place of the program; what was put there before is found again."""

from __future__ import annotations

import json

from leadline.capture.native import Native
from leadline.xla.parts import Frame

Total = tuple[str, int, int, int, int, float]
"""Metric, count, sum, smallest, largest, sum of squares."""

_CPU = ("cpu", -1, -1)


def turn_frame(of: str = "") -> Frame:
    """What the lengths of iterations of a loop are booked under: from batch to batch, or from run to run of the
    program `of`; of one call each, no time of its own."""
    return ("phase", "turn", "", "", json.dumps({"of": of}) if of else "", 0, 0, 0)


class Booked:
    """The nodes that were made so far."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._nodes: dict[tuple[int, tuple[Frame, ...]], int] = {}

    def put(
        self, place: int, frames: tuple[Frame, ...], totals: list[Total], where: tuple[str, int, int] = _CPU
    ) -> None:
        """Where measuring is paused or has ended, nothing is put. `where`: device type, device and stream."""
        if node := self.node(place, frames):
            self._native.book(node, (), totals, *where)

    def node(self, place: int, frames: tuple[Frame, ...]) -> int:
        """The place of these frames, made when it is not there yet; 0 where nothing is put."""
        node = self._nodes.get((place, frames)) or self._native.book(place, frames, (), "cpu", -1, -1)
        if node:
            self._nodes[place, frames] = node
        return node


def own_total(count: int, own: int, whole: int, longest: int) -> Total:
    """Of time that calls took by themselves, where only their whole time has a longest: in proportion to that."""
    mean = own // count
    return total("time", count, own, 0, min(own, max(mean, longest * own // whole if whole > 0 else 0)))


def total(metric: str, count: int, value: int, smallest: int, largest: int) -> Total:
    """One whose sum lies between its values, as sums of estimates need not."""
    value = max(value, 0)
    mean = value // count
    return (metric, count, value, min(smallest, mean), max(largest, -(-value // count)), 0.0)
