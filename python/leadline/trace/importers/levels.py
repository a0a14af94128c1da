"""Call trees of millions of events, level by level: what stands below the same node and is the same thing becomes one
node, so Python does work for distinct call paths only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from leadline.trace.importers.spans import Mask, Rows

_DEEPEST = 5000

Below = Callable[[int, int], list[tuple[int, float]]]
"""The nodes that a key makes below a node, each with its share of what is measured; the first is that of the event. An
empty list: nothing, what is inside stands below the node itself."""


@dataclass(frozen=True)
class Nodes:
    """`node` and `place` of every event; `parts`: the nodes of each place with their shares."""

    node: Rows
    place: Rows
    parts: list[list[tuple[int, float]]]


def levels_of(parent: Rows, guess: Rows) -> Rows:
    """How many events stand above each. `parent`: row of the event above, -1 for none; those that stand in a circle
    lose it."""
    level = guess.copy()
    for _ in range(_DEEPEST):
        above = np.where(parent >= 0, level[np.maximum(parent, 0)] + 1, 0)
        changed = above != level
        if not changed.any():
            return level
        level = above
    parent[changed] = -1
    level[changed] = 0
    return levels_of(parent, level) if bool((parent >= 0).any()) else level


def by_level(level: Rows) -> Iterator[Rows]:
    """Rows of each level, the outermost first."""
    order = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[order], np.arange(int(level.max(initial=-1)) + 2))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if high > low:
            yield order[low:high]


def nearest(parent: Rows, level: Rows, wanted: Mask) -> Rows:
    """Of every event the row of the innermost wanted one at or above it, -1 for none."""
    found = np.where(wanted, np.arange(parent.size), -1)
    for rows in by_level(level):
        rows = rows[(found[rows] < 0) & (parent[rows] >= 0)]
        found[rows] = found[parent[rows]]
    return found


def nodes_of(parent: Rows, level: Rows, root: Rows, key: Rows, below: Below) -> Nodes:
    """The node of every event: `key` below the node of its parent, or below the node `root` where it has none."""
    node = np.full(parent.size, -1, np.int64)
    place = np.full(parent.size, -1, np.int64)
    parts: list[list[tuple[int, float]]] = []
    for rows in by_level(level):
        around = np.where(parent[rows] >= 0, node[np.maximum(parent[rows], 0)], root[rows])
        pairs, which = np.unique(around << 32 | key[rows], return_inverse=True)
        made = []
        for pair in pairs.tolist():
            above = pair >> 32
            found = below(pair & 0xFFFFFFFF, above) or [(above, 1.0)]
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


def totals(group: Rows, values: Rows) -> Iterator[tuple[int, Total]]:
    """The values of each group together."""
    if not group.size:
        return
    order = np.argsort(group, kind="stable")
    ordered, values = group[order], values[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    squares = np.add.reduceat(values.astype(np.float64) ** 2, first)
    columns = (
        np.diff(np.append(first, ordered.size)),
        *(operation.reduceat(values, first) for operation in (np.add, np.minimum, np.maximum)),
    )
    for number, count, total, smallest, largest, square in zip(
        ordered[first].tolist(), *(column.tolist() for column in columns), squares.tolist(), strict=True
    ):
        yield number, Total(count, total, smallest, largest, square)


def shared(whole: Total, shares: list[float]) -> list[Total]:
    """A total by shares that add up to one; not a unit gets lost."""
    if len(shares) == 1:
        return [whole]
    found, given, reached = [], 0, 0.0
    for position, share in enumerate(shares):
        reached += share
        until = whole.total if position == len(shares) - 1 else round(whole.total * min(reached, 1.0))
        part, given = until - given, until
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
