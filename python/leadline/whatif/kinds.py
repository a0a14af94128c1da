"""The closed vocabulary of the dependency graph: task kinds, edge types, lanes, phases and selections.

Times are nanoseconds (`_ns`), sizes bytes. Everything here is a plain value; the graph itself lives in graph.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class TaskKind(IntEnum):
    """The four kinds of Daydream, section 4.2.1."""

    GPU = 0
    CPU = 1
    DATA = 2
    COMM = 3


class EdgeType(IntEnum):
    """What an explicit edge stands for. Order on one lane (the paper's types 1 and 2) is held by the lane itself.

    LAUNCH and START count from the start of their source, all others from its end. LAUNCH also puts the target into
    its stream's queue, so it must come from a CPU task.
    """

    LAUNCH = 0
    SYNC = 1
    STREAM_WAIT = 2
    THREAD = 3
    DATA = 4
    COMMUNICATION = 5
    DEPENDENCY = 6
    START = 7
    GUESSED = 8  # a stream's wait that only the observed times show
    PINNED = 9  # work without a launch keeps its distance to what ended before it
    ROOM = 10  # a launch waits until the device's queue has room


class LaneKind(IntEnum):
    """What executes tasks one after another."""

    THREAD = 0
    STREAM = 1
    CHANNEL = 2


class Discipline(IntEnum):
    """In which order a lane takes its tasks.

    ORDER: as traced (CPU threads). ISSUE: as their launches happen in the simulation (streams).
    READY: whichever is ready, smaller `priority` first, then the one ready first (channels).
    """

    ORDER = 0
    ISSUE = 1
    READY = 2


DEFAULT_DISCIPLINE: Mapping[LaneKind, Discipline] = {
    LaneKind.THREAD: Discipline.ORDER,
    LaneKind.STREAM: Discipline.ISSUE,
    LaneKind.CHANNEL: Discipline.READY,
}


class Phase(IntEnum):
    """Part of a training step."""

    OTHER = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    ZERO_GRAD = 4
    DATA_LOADING = 5


PHASE_NAMES: tuple[str, ...] = ("other", "forward", "backward", "optimizer", "zero_grad", "data loading")


@dataclass(frozen=True)
class Lane:
    """A CPU thread, a stream, or a communication channel.

    `number` is the thread id or stream number of the trace, -1 for a channel.
    """

    name: str
    kind: LaneKind
    discipline: Discipline
    rank: int = 0
    device: int = -1
    number: int = -1


@dataclass(frozen=True)
class Task:
    """One row of the graph, for predicates and for reading; changing it changes nothing."""

    id: int
    name: str
    kind: TaskKind
    lane: int
    duration_ns: int
    gap_ns: int
    start_ns: int
    layer: str
    phase: Phase
    step: int
    rank: int
    operator: str
    bytes: int


class GraphError(ValueError):
    """The graph or an edit of it makes no sense; the message says what and what to do."""


class Selection:
    """A sorted set of task ids of one graph, closed under `|`, `&`, `-`; iterates as plain ints."""

    __slots__ = ("ids",)

    def __init__(self, ids: Any) -> None:
        array = np.asarray(ids)
        self.ids: IntArray
        if array.dtype == np.bool_:
            self.ids = np.flatnonzero(array)
            return
        array = array.astype(np.int64, copy=False)
        self.ids = array if array.size < 2 or bool((array[1:] > array[:-1]).all()) else np.unique(array)

    def __len__(self) -> int:
        return int(self.ids.size)

    def __bool__(self) -> bool:
        return self.ids.size > 0

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def __contains__(self, task: int) -> bool:
        at = int(np.searchsorted(self.ids, task))
        return at < self.ids.size and int(self.ids[at]) == task

    def __or__(self, other: Selection) -> Selection:
        return Selection(np.concatenate((self.ids, other.ids)))

    def __and__(self, other: Selection) -> Selection:
        few, many = sorted((self.ids, other.ids), key=len)
        at = np.minimum(np.searchsorted(many, few), many.size - 1)
        return Selection(few[many[at] == few] if many.size else few)

    def __sub__(self, other: Selection) -> Selection:
        return Selection(np.setdiff1d(self.ids, other.ids, assume_unique=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selection) and np.array_equal(self.ids, other.ids)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Selection({len(self)} tasks)"

    def mask(self, count: int) -> BoolArray:
        """Boolean array of `count` tasks, true where selected."""
        mask = np.zeros(count, dtype=np.bool_)
        mask[self.ids] = True
        return mask
