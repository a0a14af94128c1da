"""All ranks of a job, each built by itself, on one clock and joined where they meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from leadline._dataclass import dataclass, replace
from leadline.steps import Found as Steps
from leadline.trace.tables import Trace, TraceError
from leadline.whatif.build.build import Window, drafted, placed
from leadline.whatif.build.clocks import Clock, Ends, aligned, ends_by_collective
from leadline.whatif.build.draft import Draft
from leadline.whatif.build.ranks import merge
from leadline.whatif.graph import Graph

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Found:
    """What a rank's trace says about its place in the job, -1 and 0 where it does not, and its steps."""

    rank: int
    world_size: int
    steps: frozenset[int]


@dataclass(frozen=True)
class Drafted:
    """`window_ns`: on the rank's own clock, as the ends are."""

    window_ns: tuple[int, int]
    ends: Ends


class Rank(Protocol):
    """One rank on its way to a graph: what it found, its draft over some steps, and that draft on the job's clock."""

    def found(self) -> Found: ...

    def draft(self, rank: int, note: str, steps: Collection[int]) -> Drafted: ...

    def place(self, zero_ns: int, drift: float) -> Graph: ...


class LocalRank:
    """A rank that this process has read and builds."""

    def __init__(self, trace: Trace, steps: Steps) -> None:
        self._trace, self._steps = trace, steps
        self._draft: Draft | None = None

    def found(self) -> Found:
        numbers = frozenset(step.number for step in self._steps.steps)
        return Found(self._trace.rank, self._trace.world_size, numbers)

    def draft(self, rank: int, note: str, steps: Collection[int]) -> Drafted:
        """Draft these steps. `rank`: the number it has in the job; `note`: what there is to say about that."""
        trace = replace(self._trace, rank=rank, warnings=(*self._trace.warnings, *((note,) if note else ())))
        chosen = [step for step in self._steps.steps if step.number in steps]
        self._window = Window(chosen, self._steps.found_by, self._steps.doubt)
        self._draft = drafted(trace, self._window)
        begin, end = self._window.range_ns
        zero = trace.origin_ns
        return Drafted((zero + begin, zero + end), ends_by_collective(self._draft, zero))

    def place(self, zero_ns: int, drift: float) -> Graph:
        """The draft as a graph, which is given away. `zero_ns`: what this rank's clock showed at the graph's time 0;
        `drift`: what it gained on the graph's time from there, for every nanosecond."""
        draft, self._draft = self._draft, None
        assert draft is not None
        return placed(draft, self._window, zero_ns - draft.trace.origin_ns, drift)


def job_graph(ranks: Sequence[Rank], each: Map = map) -> Graph:
    """One graph of several ranks. `each`: what goes through them, in turn or side by side.

    Raises TraceError when the traces cannot be of one job.
    """
    found = list(each(lambda rank: rank.found(), ranks))
    sizes = sorted({item.world_size for item in found if item.world_size > 1})
    if len(sizes) > 1:
        jobs = ", ".join(f"one of {size}" for size in sizes)
        raise TraceError(f"the {len(ranks)} traces come from different jobs: {jobs} workers; give those of one job")
    common = frozenset.intersection(*(item.steps for item in found))
    if not common:
        raise TraceError(
            f"the {len(ranks)} traces have no step in common; give the traces of one job over the same steps"
        )
    claimed = [item.rank for item in found if item.rank >= 0 and item.world_size > 1]
    twice = sorted({rank for rank in claimed if claimed.count(rank) > 1})
    if twice:
        raise TraceError(
            f"{claimed.count(twice[0])} of the {len(ranks)} traces are of rank {twice[0]}: they are different windows "
            "or runs; give one trace of each rank"
        )
    order, numbers, note = numbered([item.rank for item in found])
    ordered = [
        (ranks[place], number, note if at == 0 else "")
        for at, (place, number) in enumerate(zip(order, numbers, strict=True))
    ]
    drafts: list[Drafted] = list(each(lambda item: item[0].draft(item[1], item[2], common), ordered))
    windows = [item.window_ns for item in drafts]
    clocks, notes = aligned([item.ends for item in drafts], windows)
    zeros = _zeros(clocks, windows)
    places = [(item[0], zero, clock.drift) for item, zero, clock in zip(ordered, zeros, clocks, strict=True)]
    merged = merge(each(lambda item: item[0].place(item[1], item[2]), places))
    if sizes and sizes[0] > len(ranks):
        notes += (
            f"only {len(ranks)} of the job's {sizes[0]} ranks are here: collectives keep the waits for the others",
        )
    merged.info = replace(merged.info, warnings=(*merged.info.warnings, *notes))
    return merged


def _zeros(clocks: Sequence[Clock], windows: Sequence[tuple[int, int]]) -> list[int]:
    """What each rank's clock showed when the first of the windows began."""
    origin = windows[0][0]
    shown = [begin - origin - clock.offset_ns for clock, (begin, _) in zip(clocks, windows, strict=True)]
    first = min(
        round(since / (1 + clock.drift)) if clock.drift else since for clock, since in zip(clocks, shown, strict=True)
    )
    return [origin + clock.offset_ns + first + round(first * clock.drift) for clock in clocks]


def numbered(ranks: Sequence[int]) -> tuple[list[int], list[int], str]:
    """Places in the input in the order of their ranks, the number of each, and what to say about it: ranks that are
    unknown or given twice are numbered in file order."""
    places = list(range(len(ranks)))
    if len(ranks) == 1:
        return places, [max(ranks[0], 0)], ""
    if min(ranks) >= 0 and len(set(ranks)) == len(ranks):
        places.sort(key=lambda place: ranks[place])
        return places, [ranks[place] for place in places], ""
    return places, places, "the files do not name distinct ranks; they are numbered in the order of their names"
