"""`Fold`: what is known of the ranks folded so far. Plain data that can be sent to another process.

Its size is that of the distinct paths and of some numbers per rank. Every node below the root has a smaller parent; a
group of processes is a node below the root. What belongs to a process or thread is known by frame keys, never by
numbers, so that joining needs no second look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.profiles.codetables import CodeTables
from leadline.profiles.fold.wide import Limbs
from leadline.profiles.step_rows import StepRows

Ids = NDArray[np.int64]

COST = ("callbacks_ns", "flush_ns", "events", "held_bytes")
"""What processes say of their own cost, as in meta.json."""
UNTIMED = "first step"
"""The value of a rank that counts steps which ended without a known beginning."""
WHOLE, PARTIAL, MISSING = 0, 1, 2
"""Status of a rank: stopped in order, taken from its last segment, not there."""
LAWFUL = ("pp", "ep")
"""Coordinates by which the work of ranks differs lawfully: pipeline stages, experts."""


@dataclass(frozen=True)
class Rank:
    """One rank. `group`: key of the process frame that it was folded into, empty where nothing of it was read.
    `values`: what it spent on what, as (sum, number of measurements)."""

    rank: int
    identity: str
    group: bytes = b""
    local_rank: int = -1
    host: str = ""
    role: str = ""
    status: int = WHOLE
    files: tuple[str, ...] = ()
    note: str = ""
    start_ns: int = 0
    end_ns: int = 0
    values: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def steps_untimed(self) -> int:
        """Steps that ended without a known beginning."""
        return self.values.get(UNTIMED, (0, 0))[1]

    @property
    def steps_ended(self) -> int:
        """Steps that ended, timed or not."""
        return self.values.get("steps", (0, 0))[1] + self.steps_untimed

    @property
    def order(self) -> tuple[bool, int, str]:
        """By number; ranks without one come last."""
        return self.rank < 0, self.rank, self.identity


@dataclass(frozen=True)
class Sums:
    """The `metrics` rows of one metric, device and stream; `node` has no value twice."""

    node: Ids
    count: Ids
    total: Limbs
    least: Ids
    most: Ids
    squares: Limbs


@dataclass(frozen=True)
class Spread:
    """The `rank_stats` rows of one metric; `node` has no value twice, the ranks are rows of `Fold.ranks`."""

    node: Ids
    ranks: Ids
    total: Limbs
    squares: Limbs
    least: Ids
    most: Ids
    least_rank: Ids
    most_rank: Ids


@dataclass(frozen=True)
class Histogram:
    """The `rank_histogram` rows of one metric, by node and bin: most of what a fold of many ranks holds."""

    node: NDArray[np.int32]
    bin: NDArray[np.int16]
    ranks: NDArray[np.int32]

    @classmethod
    def of(cls, node: NDArray[Any], bin_: NDArray[Any], ranks: NDArray[Any]) -> Histogram:
        """From columns of any width."""
        return cls(node.astype(np.int32), bin_.astype(np.int16), ranks.astype(np.int32))


@dataclass(frozen=True)
class Group:
    """What the processes folded into one node have in common."""

    start_ns: int
    end_ns: int
    complete: bool
    name: str
    """The smallest of their command lines."""


@dataclass(frozen=True)
class ThreadSums:
    """Threads of one name in one group, added up."""

    mains: int
    """How many of them were the main thread of a rank."""
    operator_ns: int
    data_ns: int
    wall_ns: int
    cpu_ns: int
    steps: StepRows = field(default_factory=StepRows)


@dataclass(frozen=True)
class DeviceKind:
    """Devices that are one row of the result: the n-th of each rank in its group, if they are of one kind."""

    group: bytes
    index: int
    name: str
    memory_bytes: int
    detail: str


Column = tuple[int, int, int]
"""Metric, row of `Fold.devices` (-1: the CPU), stream."""


@dataclass(frozen=True)
class Fold:
    """See above. `by`: what the groups are. `holders`: how many ranks have each node. `alone`: what single ranks (rows
    of `ranks`) have measured, at nodes of this fold; joining forgets it (see alone.py)."""

    by: str
    keys: list[bytes]
    """Distinct frames; `files`: the file of each as it is shown."""
    files: list[bytes]
    parent: Ids
    frame: Ids
    holders: Ids
    sums: Mapping[Column, Sums]
    spreads: Mapping[int, Spread]
    histograms: Mapping[int, Histogram]
    ranks: list[Rank]
    """In their order."""
    groups: Mapping[bytes, Group]
    threads: Mapping[tuple[bytes, bytes], ThreadSums]
    """By group and the thread frame's key."""
    devices: list[DeviceKind]
    losses: Mapping[tuple[bytes, int, str], int]
    """Counts by group, kind and sentence."""
    meta: Mapping[str, Any]
    """Of the first rank; `cost` and the times are those of all."""
    code: CodeTables
    """Machine code that was sampled on any rank, once by content."""
    alone: Mapping[int, Mapping[Column, Sums]] = field(default_factory=dict)


def rows_of(one: Sums, wanted: NDArray[np.bool_]) -> Sums:
    """Some of the rows."""
    return Sums(
        one.node[wanted],
        one.count[wanted],
        one.total[:, wanted],
        one.least[wanted],
        one.most[wanted],
        one.squares[:, wanted],
    )
