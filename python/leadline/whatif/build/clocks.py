"""How the clocks of a job's ranks differ: by an offset and a drift each, told by the ends of collectives they share.

Members of a collective end within microseconds of one another, so what their ends are apart is what their clocks are
apart. Two ranks are compared by the numbers that torch.distributed gives their collectives or else by place; a rank
that takes part in some groups only (a pipeline's stage) is placed through those that it shares with others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.tables import TraceError
from leadline.units import duration
from leadline.whatif.build.draft import Draft
from leadline.whatif.build.ranks import SAME_END_NS, communicator
from leadline.whatif.kinds import TaskKind

CLOCK_NS = 50_000  # clocks that disagree less need no correction
_MOST_PAIRED = 500  # collectives of a rank whose distances to all of another are compared
_ENOUGH = 8  # shared collectives that a drift is told from
_FASTEST = 1e-3  # of a drift; quartz is off by a hundred millionths at most

Ends = Mapping[Any, int]
"""End of every collective of a rank on its own clock, by group and number."""


@dataclass(frozen=True)
class Clock:
    """A rank's clock shows `offset_ns` more than the job's at the job's time 0, and gains `drift` on it from there.
    `spread_ns`: how far the ends of common collectives still lie apart typically; 0 where there is nothing to align."""

    offset_ns: int = 0
    drift: float = 0.0
    spread_ns: int = 0


@dataclass(frozen=True)
class _Apart:
    """What one clock shows more than another: `ahead` at the moment 0 and `drift` more with every nanosecond."""

    ahead: float
    drift: float
    spread: float


def ends_by_collective(draft: Draft, start_ns: int) -> Ends:
    """`start_ns`: the moment, on the rank's clock, that the draft's times count from."""
    comm = np.flatnonzero(draft["kind"] == TaskKind.COMM)
    comm = comm[np.argsort(draft["start_ns"][comm], kind="stable")]
    ends = draft["start_ns"][comm] + draft["measured_ns"][comm] + start_ns
    lanes: dict[int, int] = {}
    count: dict[Any, int] = {}
    found: dict[Any, int] = {}
    rows = zip(draft["detail"][comm].tolist(), draft["lane"][comm].tolist(), ends.tolist(), strict=True)
    for row, lane, end in rows:
        detail = draft.trace.details[row] if row >= 0 else {}
        group = communicator(detail, lane, lanes)
        number = detail.get("Seq")
        place = count[group] = count.get(group, -1) + 1
        found[(group, "Seq", number) if isinstance(number, int) else (group, "place", place)] = end
    return found


def aligned(ends: Sequence[Ends], windows: Sequence[tuple[int, int]]) -> tuple[list[Clock], tuple[str, ...]]:
    """The clock of every rank, and what to say about them. `windows`: on each rank's clock; the first one's begin is
    the job's time 0.

    Raises TraceError where nothing relates two clocks and they show times that have nothing in common.
    """
    zero = windows[0][0]
    related: dict[int, _Apart] = {0: _Apart(0.0, 0.0, 0.0)}
    waiting = [0]
    while waiting:
        known = waiting.pop(0)
        for other in range(len(ends)):
            if other in related:
                continue
            apart = _apart(ends[known], ends[other], zero)
            if apart is not None:
                related[other] = _behind(related[known], apart)
                waiting.append(other)
    _same_run(related, ends, windows)
    ahead = float(np.median([clock.ahead for clock in related.values()]))
    drift = float(np.median([clock.drift for clock in related.values()]))
    clocks = [
        _settled(related[rank], ahead, drift, windows[rank]) if rank in related else Clock()
        for rank in range(len(ends))
    ]
    return clocks, (*_notes(clocks), *_strangers(related, ends))


def _settled(found: _Apart, ahead: float, drift: float, window: tuple[int, int]) -> Clock:
    """The clock against the median of all; none where the correction would be too small to tell."""
    own = found.drift - drift if abs(found.drift - drift) * (window[1] - window[0]) > CLOCK_NS else 0.0
    offset = round(found.ahead - ahead)
    return Clock(offset if abs(offset) > CLOCK_NS or own else 0, own, round(found.spread))


def _behind(first: _Apart, second: _Apart) -> _Apart:
    """What a clock shows that is `second` ahead of one that is `first` ahead itself."""
    return _Apart(
        first.ahead + second.ahead + second.drift * first.ahead,
        first.drift + second.drift + first.drift * second.drift,
        max(first.spread, second.spread),
    )


def _apart(one: Ends, other: Ends, zero: int) -> _Apart | None:
    """How far the second clock runs ahead of the first; None where their collectives do not agree on it."""
    shared = [key for key in one if key in other]
    if not shared:
        return None
    groups = {key[0] for key in shared}
    if any(sum(key[0] == group for key in one) != sum(key[0] == group for key in other) for group in groups) and any(
        key[1] == "place" for key in shared
    ):
        return _most_agreed(
            np.array([end for key, end in one.items() if key[0] in groups], dtype=np.float64),
            np.array([end for key, end in other.items() if key[0] in groups], dtype=np.float64),
        )
    at = np.array([one[key] - zero for key in shared], dtype=np.float64)
    apart = np.array([other[key] - one[key] for key in shared], dtype=np.float64)
    order = np.argsort(at, kind="stable")
    found = _line(at[order], apart[order])
    return found if found.spread <= SAME_END_NS else None


def _line(at: NDArray[np.float64], apart: NDArray[np.float64]) -> _Apart:
    """Offset and drift of distances at moments in order: a drift only where it explains most of how they vary.

    The slope is the median of slopes over half of the time, which a few collectives that ended out of step leave alone.
    """
    middle = float(np.median(apart))
    flat = _Apart(middle, 0.0, float(np.median(np.abs(apart - middle))))
    half = at.size // 2
    if at.size < _ENOUGH:
        return flat
    span = at[half : 2 * half] - at[:half]
    slopes = (apart[half : 2 * half] - apart[:half])[span > 0] / span[span > 0]
    slope = float(np.median(slopes)) if slopes.size else 0.0
    if abs(slope) > _FASTEST:
        return flat
    level = float(np.median(apart - slope * at))
    spread = float(np.median(np.abs(apart - slope * at - level)))
    return _Apart(level, slope, spread) if spread < flat.spread / 2 else flat


def _most_agreed(one: NDArray[np.float64], other: NDArray[np.float64]) -> _Apart | None:
    """The distance on which most pairs of ends agree, where records were lost and places say nothing; the smallest of
    several."""
    apart = np.sort((other[None, :_MOST_PAIRED] - one[:_MOST_PAIRED, None]).reshape(-1))
    agree = np.searchsorted(apart, apart + SAME_END_NS, side="right") - np.arange(apart.size)
    best = np.flatnonzero(agree == agree.max())
    first = int(best[np.argmin(np.abs(apart[best]))])
    if int(agree[first]) < max(min(one.size, other.size) / 2, 1):
        return None
    agreed = apart[first : first + int(agree[first])]
    middle = float(np.median(agreed))
    return _Apart(middle, 0.0, float(np.median(np.abs(agreed - middle))))


def _same_run(related: Mapping[int, _Apart], ends: Sequence[Ends], windows: Sequence[tuple[int, int]]) -> None:
    """Refuses ranks that no collective relates to the first one and whose windows lie apart by more than they last."""
    begin, end = windows[0]
    for rank in range(len(ends)):
        low, high = windows[rank]
        between = max(low - end, begin - high)
        if rank not in related and between > max(end - begin, high - low):
            raise TraceError(
                f"the windows of the first trace and of trace {rank + 1} lie {duration(between)} apart, and no "
                "collective that both took part in says how their clocks differ: they are of different runs, or of "
                "machines whose clocks disagree; give the traces of one run, or one of them alone"
            )


def _strangers(related: Mapping[int, _Apart], ends: Sequence[Ends]) -> tuple[str, ...]:
    """A sentence on the ranks whose collectives agree with nobody's."""
    alone = [rank for rank in range(len(ends)) if rank not in related and ends[rank]]
    if not alone or not ends[0]:
        return ()
    which = ", ".join(str(rank) for rank in alone)
    return (
        f"no collective of trace {which} (counted from 0) ends together with one of the others, so their clocks could "
        "not be compared and they may be of another run: do not trust predictions about waits between ranks",
    )


def _notes(clocks: Sequence[Clock]) -> tuple[str, ...]:
    moved = [clock for clock in clocks if clock.offset_ns or clock.drift]
    if not moved:
        return ()
    offset = max(abs(clock.offset_ns) for clock in moved) / 1e6
    drift = max(abs(clock.drift) for clock in moved) * 1e6
    drifting = f" and drift apart by {drift:.0f} µs a second" if drift else ""
    spread = max(clock.spread_ns for clock in moved) / 1e3
    return (
        f"the ranks' clocks disagree by up to {offset:.2f} ms{drifting}; they were aligned by the ends of collectives, "
        f"which then lie {spread:.0f} µs apart: waits between ranks are uncertain by as much",
    )
