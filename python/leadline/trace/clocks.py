"""How two clocks relate, from messages between them: the convex hull of Duda, Harrus, Haddad and Bernard (1999), as
Poirier, Roy and Dagenais (2010) use it for traces.

A message from A to B was received after it was sent, so the point (sent on A, received on B) lies above the line
y = offset + slope * x that relates the clocks; one from B to A lies below, as (received on A, sent on B). Every line
between the two sets is possible. The steepest and the flattest of them bound the slope, their bisector is the answer,
and half of what lies between the two sets is how wrong it may be. Where no line fits, there is no relation: the clock
jumped, or the pairs are not what they seem.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.tables import TraceError

Numbers = NDArray[np.int64]
Point = tuple[int, int]
_LEAST_PAIRS = 2


class ClockError(TraceError):
    """Two clocks cannot be related; the message says why."""


@dataclass(frozen=True)
class Relation:
    """B's clock shows `b_ns(a)` when A's shows a. `half_width_ns`: the truth lies no further away in the time that the
    pairs span. `drift`: slope minus 1. `method` and `pairs`: what it rests on."""

    reference_ns: int
    offset_ns: float
    drift: float
    half_width_ns: float
    method: str
    pairs: int

    def b_ns(self, a_ns: Numbers | int) -> NDArray[np.int64]:
        """Times of A on the clock of B."""
        since = np.asarray(a_ns, dtype=np.int64) - self.reference_ns
        moved = since + np.rint(self.offset_ns + self.drift * since).astype(np.int64)
        found: Numbers = moved + self.reference_ns
        return found


def hull_relation(
    a_to_b: tuple[Sequence[int], Sequence[int]], b_to_a: tuple[Sequence[int], Sequence[int]], method: str = "messages"
) -> Relation:
    """The relation of two clocks. `a_to_b`: when messages were sent on A and received on B; `b_to_a`: when the others
    were received on A and sent on B; all in ns. Raises ClockError."""
    above = sorted(zip(map(int, a_to_b[0]), map(int, a_to_b[1]), strict=True))
    below = sorted(zip(map(int, b_to_a[0]), map(int, b_to_a[1]), strict=True))
    if len(above) < _LEAST_PAIRS or len(below) < _LEAST_PAIRS:
        raise ClockError(
            f"two clocks are related by messages in both directions, and there are {len(above)} and {len(below)}"
        )
    origin = min(above[0][0], below[0][0])
    upper = _hull([(x - origin, y - x) for x, y in above], lower=True)  # residuals, to stay within exact numbers
    lower = _hull([(x - origin, y - x) for x, y in below], lower=False)
    flattest, steepest = _bounds(upper, lower)
    if flattest is None or steepest is None:
        raise ClockError("the messages contradict each other: no relation of the two clocks fits all of them")
    low_a, low_b = flattest
    high_a, high_b = steepest
    slope, start = (low_b + high_b) / 2, (low_a + high_a) / 2
    last = max(above[-1][0], below[-1][0]) - origin
    width = max(_gap(flattest, steepest, upper, lower, x) for x in (Fraction(0), Fraction(last)))
    return Relation(origin, float(start), float(slope), float(width), method, len(above) + len(below))


Line = tuple[Fraction, Fraction]
"""Offset and slope."""


def _hull(points: list[Point], *, lower: bool) -> list[Point]:
    """The lower or upper hull of points that are sorted by x."""
    found: list[Point] = []
    sign = 1 if lower else -1
    for x, y in points:
        if found and found[-1][0] == x:
            if sign * (y - found[-1][1]) >= 0:
                continue
            found.pop()
        while len(found) > 1:
            (ax, ay), (bx, by) = found[-2], found[-1]
            if sign * ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) > 0:
                break
            found.pop()
        found.append((x, y))
    return found


def _bounds(upper: list[Point], lower: list[Point]) -> tuple[Line | None, Line | None]:
    """The flattest and the steepest line that stay below `upper` and above `lower`."""
    best: list[Line | None] = [None, None]
    for x, y in upper:
        for u, v in lower:
            if x == u:
                if y < v:
                    return None, None
                continue
            slope = Fraction(y - v, x - u)
            line = (Fraction(y) - slope * x, slope)
            # one that leaves a point of the upper set before one of the lower is the flattest that can be, or none
            if not _fits(line, upper, lower):
                continue
            if best[0] is None or slope < best[0][1]:
                best[0] = line
            if best[1] is None or slope > best[1][1]:
                best[1] = line
    return best[0], best[1]


def _fits(line: Line, upper: list[Point], lower: list[Point]) -> bool:
    offset, slope = line
    return all(offset + slope * x <= y for x, y in upper) and all(offset + slope * x >= y for x, y in lower)


def _gap(flattest: Line, steepest: Line, upper: list[Point], lower: list[Point], x: Fraction) -> Fraction:
    """The furthest that a possible line may be from the bisector at x: between the hulls and the two lines."""
    middle = (flattest[0] + steepest[0]) / 2 + (flattest[1] + steepest[1]) / 2 * x
    ends = [_extreme(upper, lower, x, sign) for sign in (1, -1)]
    return max(abs(end - middle) for end in ends)


def _extreme(upper: list[Point], lower: list[Point], x: Fraction, sign: int) -> Fraction:
    """The highest (sign 1) or lowest value at x of any line that fits."""
    found: Fraction | None = None
    points = [*upper, *lower]
    for number, (ax, ay) in enumerate(points):
        for bx, by in points[number + 1 :]:
            if ax == bx:
                continue
            slope = Fraction(by - ay, bx - ax)
            line = (Fraction(ay) - slope * ax, slope)
            if _fits(line, upper, lower):
                value = line[0] + line[1] * x
                found = value if found is None or sign * value > sign * found else found
    if found is None:
        raise ClockError("the messages contradict each other: no relation of the two clocks fits all of them")
    return found
