"""Call trees of millions of events, level by level: what stands below the same node and is the same thing becomes one
node, so Python does work for distinct call paths only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.importers.spans import Mask, Rows
from leadline.trace.tables import distinct

_DEEPEST = 5000

Below = Callable[[int, int], list[tuple[int, float]]]
"""The nodes that a key makes below a node, each with its share of what is measured; the first is that of the event. An
empty list: nothing, what is inside stands below the node itself."""


@dataclass(frozen=True)
class Nodes:
    """`node` and `place` of every event; `parts`: the nodes of each place with their shares."""

    node: Rows
    place: NDArray[np.int32]
    parts: list[list[tuple[int, float]]]


def levels_of(parent: Rows) -> NDArray[np.int32]:
    """How many events stand above each. `parent`: row of the event above, -1 for none; one of those that stand in a
    circle loses it."""
    from leadline import _events

    level, cut = _events.levels(parent, _DEEPEST)
    parent[cut] = -1
    found: NDArray[np.int32] = level
    return found


def by_level(level: NDArray[np.int32]) -> Iterator[Rows]:
    """Rows of each level, the outermost first."""
    short = level.astype(np.int16)  # which NumPy orders by counting
    order = np.argsort(short, kind="stable")
    bounds = np.searchsorted(short[order], np.arange(int(level.max(initial=-1)) + 2))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if high > low:
            yield order[low:high]


def nearest(parent: Rows, wanted: Mask) -> Rows:
    """Of every event the row of the innermost wanted one at or above it, -1 for none."""
    from leadline import _events

    found: Rows = _events.nearest(parent, wanted.view(np.uint8))
    return found


def nodes_of(parent: Rows, level: NDArray[np.int32], root: Rows, key: Rows, below: Below) -> Nodes:
    """The node of every event: `key` below the node of its parent, or below the node `root` where it has none."""
    node = np.full(parent.size, -1, np.int64)
    place = np.full(parent.size, -1, np.int32)
    parts: list[list[tuple[int, float]]] = []
    for rows in by_level(level):
        around = np.where(parent[rows] >= 0, node[np.maximum(parent[rows], 0)], root[rows])
        keys = key[rows]
        first, which = distinct(around, keys)
        made = []
        for one, above in zip(keys[first].tolist(), around[first].tolist(), strict=True):
            found = below(one, above) or [(above, 1.0)]
            made.append(found[0][0])
            parts.append(found)
        node[rows] = np.array(made, np.int64)[which]
        place[rows] = which + (len(parts) - len(made))
    return Nodes(node, place, parts)


@dataclass(frozen=True)
class Total:
    """Measurements of one group."""

    count: int
    total: int
    smallest: int
    largest: int
    squares: float


def totals(group: NDArray[np.int32], values: Rows) -> Iterator[tuple[int, Total]]:
    """The values of each group together."""
    from leadline import _events

    sums = _events.sums(group, np.ascontiguousarray(values, np.int64))
    present = np.flatnonzero(sums[0])
    for number, *total in zip(present.tolist(), *(column[present].tolist() for column in sums), strict=True):
        yield number, Total(*total)


def shared(whole: Total, shares: list[float]) -> list[Total]:
    """A total by shares that add up to one; not a unit gets lost. Each part has happened as often as the whole."""
    if len(shares) == 1:
        return [whole]
    found = []
    for part, share in zip(_whole_numbers(whole.total, shares), shares, strict=True):
        mean = part / whole.count
        found.append(
            Total(
                whole.count,
                part,
                min(int(whole.smallest * share), int(mean)),
                max(-int(-whole.largest * share // 1), -int(-mean // 1)),
                max(whole.squares * share * share, part * part / whole.count),
            )
        )
    return found


def dealt(whole: Total, shares: list[float]) -> list[Total]:
    """A total by shares that add up to one, where what was counted counts once: each part has that share of it too.
    Where there are more parts than that each still counts for one."""
    times = _whole_numbers(whole.total, shares)
    kept = [place for place, time in enumerate(times) if time or whole.total == 0]
    counts = dict(zip(kept, _at_least_one(whole.count, [shares[place] for place in kept]), strict=True))
    found = []
    for place, time in enumerate(times):
        count = counts.get(place, 0)
        if not count:
            found.append(Total(0, 0, 0, 0, 0.0))
            continue
        low, high = time // count, -(-time // count)
        squares = max(whole.squares * count / whole.count, time * time / count)
        found.append(Total(count, time, min(whole.smallest, low), max(high, whole.largest), squares))
    return found


def _whole_numbers(total: int, shares: list[float]) -> list[int]:
    found, given, reached = [], 0, 0.0
    for position, share in enumerate(shares):
        reached += share
        until = total if position == len(shares) - 1 else round(total * min(reached, 1.0))
        found.append(until - given)
        given = until
    return found


def _at_least_one(total: int, shares: list[float]) -> list[int]:
    """Whole numbers by shares, none of them 0; they add up to the total where that is as much as there are shares."""
    spare, whole = max(total - len(shares), 0), sum(shares) or 1.0
    given = _whole_numbers(spare, [share / whole for share in shares])
    return [1 + more for more in given]
