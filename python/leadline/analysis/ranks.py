"""Ranks of a folded profile side by side: what each spent on what, how far apart they are, who holds the others up.

In a job whose ranks wait for each other every rank takes equally long, so wall time tells nothing. What tells is a
rank's **own** time: wall less communication, since the one that is late waits least. It is compared with ranks of the
same role only: stages of a pipeline differ lawfully. The measure is the fast quarter of the peers, not their median,
since a slow machine may hold half of a stage.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.profiles.fold.restore import stored_ranks
from leadline.profiles.fold.state import LAWFUL, MISSING, PARTIAL, UNTIMED, Rank
from leadline.profiles.fold.wide import as_float, from_pair
from leadline.profiles.tree import metric_kind

Matrix = NDArray[np.int64]

_ORDER = (
    "time forward", "time backward", "time optimizer", "time zero_grad", "time data loading", "time compile",
    "time other", "communication", "outside operators", "gpu_time forward", "gpu_time backward", "gpu_time optimizer",
    "gpu_time other", "gpu_time communication",
)  # fmt: skip
_ATTACHED = "attached"
NOT_PARTS = ("wall", "cpu", "peak", "steps", "collectives")
"""Values that are no part of a rank's time."""


@dataclass(frozen=True)
class Spread:
    """One quantity over the ranks that have it; `least_rank` and `most_rank` are rows of ranks."""

    name: str
    ranks: int
    mean: float
    std: float
    least: int
    most: int
    least_rank: int
    most_rank: int


class RankView:
    """The tables of ranks as a matrix: a row for each rank that was read, a column for each quantity."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.all: list[Rank] = stored_ranks(profile.tables)
        """Every rank of the job, missing ones too: rows of the table ranks."""
        self.rows = [row for row, rank in enumerate(self.all) if rank.status != MISSING]
        self.ranks = [self.all[row] for row in self.rows]
        found = {name for rank in self.ranks for name in rank.values} - {_ATTACHED, UNTIMED}
        known = [name for name in _ORDER if name in found]
        self.names = [*known, *sorted(found - set(known))]

    def was_attached(self, row: int) -> bool:
        """Whether measuring of the rank was begun from outside, in the middle of the job."""
        return _ATTACHED in self.ranks[row].values

    @cached_property
    def values(self) -> Matrix:
        """Shape (ranks, names); 0 where a rank has none."""
        return np.array(
            [[rank.values.get(name, (0, 0))[0] for name in self.names] for rank in self.ranks], np.int64
        ).reshape(len(self.ranks), len(self.names))

    @cached_property
    def counts(self) -> Matrix:
        """Numbers of measurements, in the shape of `values`."""
        return np.array(
            [[rank.values.get(name, (0, 0))[1] for name in self.names] for rank in self.ranks], np.int64
        ).reshape(len(self.ranks), len(self.names))

    @property
    def parts(self) -> list[str]:
        """Names of what a rank's time went to, in the order of a step."""
        return [name for name in self.names if name not in NOT_PARTS]

    def column(self, name: str) -> Matrix:
        """One quantity of every rank; zeros where nobody has it."""
        return self.values[:, self.names.index(name)] if name in self.names else np.zeros(len(self.ranks), np.int64)

    def count(self, name: str) -> Matrix:
        """How often it was measured on every rank."""
        return self.counts[:, self.names.index(name)] if name in self.names else np.zeros(len(self.ranks), np.int64)

    @cached_property
    def steps(self) -> Matrix:
        """Steps that every rank has ended; 1 where no step was seen on any, so that "per step" is "in all"."""
        return np.maximum(np.array([rank.steps_ended for rank in self.ranks], np.int64), 1)

    @property
    def missing(self) -> list[int]:
        """Numbers of the ranks of which nothing was read."""
        return [rank.rank for rank in self.all if rank.status == MISSING]

    @property
    def partial(self) -> list[int]:
        """Numbers of those that did not stop in order."""
        return [rank.rank for rank in self.all if rank.status == PARTIAL]

    @cached_property
    def hosts(self) -> list[str]:
        """Machines, in order."""
        return sorted({rank.host for rank in self.ranks if rank.host})

    def role(self, row: int) -> dict[str, int]:
        """Coordinates of a rank (a row of `ranks`); empty where unknown."""
        return role_of(self.ranks[row])

    def peers(self) -> dict[tuple[tuple[str, int], ...], list[int]]:
        """Rows of `ranks` by what may lawfully differ: stage and expert."""
        groups: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for row in range(len(self.ranks)):
            role = self.role(row)
            groups.setdefault(tuple((name, role[name]) for name in LAWFUL if name in role), []).append(row)
        return groups

    def spreads(self) -> list[Spread]:
        """Every quantity over all ranks, parts of the time first."""
        made = []
        for name in [*self.parts, *(name for name in NOT_PARTS if name in self.names and name != "collectives")]:
            has = np.flatnonzero(self.count(name))
            column = self.column(name)[has]
            if not len(has):
                continue
            least, most = int(np.argmin(column)), int(np.argmax(column))
            made.append(
                Spread(
                    name,
                    len(has),
                    float(column.mean()),
                    float(column.std()),
                    int(column[least]),
                    int(column[most]),
                    self.rows[int(has[least])],
                    self.rows[int(has[most])],
                )
            )
        return made

    @cached_property
    def _stats(self) -> dict[tuple[int, int], int]:
        table = self.profile.tables["rank_stats"]
        pairs = zip(table["node"].tolist(), table["metric"].tolist(), strict=True)
        return {pair: row for row, pair in enumerate(pairs)}

    def of_node(self, node: int, metric: str) -> Spread | None:
        """The inclusive sums of a metric at a node over ranks; None where nothing is kept of it."""
        row = self._stats.get((node, int(metric_kind(metric))))
        if row is None:
            return None
        one = {name: values[row : row + 1] for name, values in self.profile.tables["rank_stats"].items()}
        ranks = int(one["ranks"][0])
        total = int(one["sum_high"][0]) * 2**32 + int(one["sum_low"][0])
        squares = float(as_float(from_pair(one["squares_high"], one["squares_low"]))[0])
        mean = total / max(ranks, 1)
        variance = max(squares / max(ranks, 1) - mean * mean, 0.0)
        return Spread(
            metric,
            ranks,
            mean,
            variance**0.5,
            int(one["min"][0]),
            int(one["max"][0]),
            int(one["min_rank"][0]),
            int(one["max_rank"][0]),
        )


def is_folded_profile(profile: Profile) -> bool:
    """Whether it has a table of ranks."""
    return profile.tables.rows("ranks") > 0


def role_of(rank: Rank) -> dict[str, int]:
    """Its coordinates; empty where unknown."""
    try:
        role = json.loads(rank.role) if rank.role else {}
    except ValueError:
        return {}
    return {str(name): int(place) for name, place in role.items()} if isinstance(role, dict) else {}


def rank_label(rank: Rank) -> str:
    """`rank 3`, or the machine and pid of one without a number."""
    return f"rank {rank.rank}" if rank.rank >= 0 else rank.identity.rpartition(":")[0] or "a rank without a number"


def ranges(numbers: Sequence[int]) -> str:
    """`3, 8-11`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
