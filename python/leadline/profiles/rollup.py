"""The shape of a tree of `parent` rows (children, depths, levels) and the roll-up from exclusive to inclusive.

Constraint: a parent has a smaller row number than its children. Everything is done level by level with whole-array
operations; a tree so deep and thin that levels hold a few nodes each is walked node by node instead, which is then the
faster of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.measures import Measures
from leadline.profiles.tables import Array

_NARROW = 40  # nodes per level below which one Python step per node beats five array operations per level


class Shape:
    """Children, depths and levels of a tree; each is computed when first asked for."""

    def __init__(self, parent: Array) -> None:
        self.parent: NDArray[np.int64] = parent.astype(np.int64)
        self.size = len(parent)

    @cached_property
    def by_parent(self) -> NDArray[np.int64]:
        """All rows but the root, grouped by parent, in row order within a group."""
        return np.argsort(self.parent[1:], kind="stable") + 1

    @cached_property
    def child_offsets(self) -> NDArray[np.int64]:
        """Children of row i are `by_parent[child_offsets[i]:child_offsets[i+1]]`; length size + 1."""
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(self.parent[1:], minlength=self.size), out=offsets[1:])
        return offsets

    def children(self, row: int) -> NDArray[np.int64]:
        return self.by_parent[self.child_offsets[row] : self.child_offsets[row + 1]]

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Distance from the root, by pointer doubling: log2(depth) passes however deep the tree."""
        ancestor = self.parent.copy()
        ancestor[:1] = 0
        depth = np.ones(self.size, np.int32)
        depth[:1] = 0
        while True:
            further = depth[ancestor]
            if not further.any():
                return depth
            depth += further
            ancestor = ancestor[ancestor]

    @cached_property
    def level_offsets(self) -> NDArray[np.int64]:
        """Rows of depth d are `by_level[level_offsets[d]:level_offsets[d+1]]`."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.depth)))).astype(np.int64)

    @cached_property
    def by_level(self) -> NDArray[np.int64]:
        """Rows ordered by depth, then parent, then row."""
        rows = np.concatenate((np.zeros(min(1, self.size), np.int64), self.by_parent))
        depth = self.depth[rows]
        small = depth.astype(np.int16) if len(depth) and int(depth.max()) < 2**15 else depth  # 16 bits sort by radix
        return rows[np.argsort(small, kind="stable")]

    def levels(self) -> Iterator[NDArray[np.int64]]:
        """Rows level by level, from the root down."""
        bounds = self.level_offsets.tolist()
        for begin, end in pairwise(bounds):
            yield self.by_level[begin:end]

    @property
    def narrow(self) -> bool:
        return self.size < _NARROW * (len(self.level_offsets) - 1)


def subtree_sums(shape: Shape, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of `values` over every node and all below it."""
    sums = values.astype(np.int64)
    if shape.narrow:
        parent, plain = shape.parent.tolist(), sums.tolist()
        for row in range(shape.size - 1, 0, -1):
            plain[parent[row]] += plain[row]
        return np.array([value & 0xFFFFFFFFFFFFFFFF for value in plain], np.uint64).view(np.int64)
    bounds = shape.level_offsets.tolist()
    for begin, end in reversed(list(pairwise(bounds))[1:]):
        rows = shape.by_level[begin:end]
        parents = shape.parent[rows]
        first = np.flatnonzero(np.concatenate(([True], parents[1:] != parents[:-1])))
        sums[parents[first]] += np.add.reduceat(sums[rows], first)
    return sums


def inclusive_measures(shape: Shape, exclusive: Measures) -> Measures:
    """Each row's own measurements together with those of its whole subtree."""
    if not exclusive.count.any():
        return exclusive  # nobody writes to what a tree keeps
    return _inclusive_by_node(shape, exclusive) if shape.narrow else _inclusive_by_level(shape, exclusive)


def _inclusive_by_level(shape: Shape, own: Measures) -> Measures:
    result = own.copy()
    bounds = shape.level_offsets.tolist()
    for level in range(len(bounds) - 2, 0, -1):
        rows = shape.by_level[bounds[level] : bounds[level + 1]]
        parent = shape.parent[rows]
        first = np.flatnonzero(np.concatenate(([True], parent[1:] != parent[:-1])))
        at = parent[first]
        result.count[at] += np.add.reduceat(result.count[rows], first)
        result.sum[at] += np.add.reduceat(result.sum[rows], first)
        result.min[at] = np.minimum(result.min[at], np.minimum.reduceat(result.min[rows], first))
        result.max[at] = np.maximum(result.max[at], np.maximum.reduceat(result.max[rows], first))
        result.sum_squares[at] += np.add.reduceat(result.sum_squares[rows], first)
    return result


def _inclusive_by_node(shape: Shape, own: Measures) -> Measures:
    parent = shape.parent.tolist()
    count, total, low, high = own.count.tolist(), own.sum.tolist(), own.min.tolist(), own.max.tolist()
    squares = own.sum_squares.tolist()
    for row in range(shape.size - 1, 0, -1):
        if not count[row]:
            continue
        at = parent[row]
        count[at] += count[row]
        total[at] += total[row]
        squares[at] += squares[row]
        low[at] = min(low[at], low[row])
        high[at] = max(high[at], high[row])
    return Measures(
        count=_wrapped(count),
        sum=_wrapped(total),
        min=np.array(low, np.int64),
        max=np.array(high, np.int64),
        sum_squares=np.array(squares, np.float64),
    )


def _wrapped(values: list[int]) -> NDArray[np.int64]:
    """Sums beyond 64 bits wrap as they do in array operations, so that no file can raise here."""
    return np.array([value & 0xFFFFFFFFFFFFFFFF for value in values], np.uint64).view(np.int64)


def nearest(shape: Shape, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For every node the row of the innermost `wanted` node on its path, itself included; -1 where there is none.

    By pointer doubling: as many passes as the logarithm of the longest gap, however deep the tree is.
    """
    if not wanted.any():
        return np.full(shape.size, -1, np.int64)
    at = shape.parent.copy()
    at[:1] = 0
    rows = np.flatnonzero(wanted)
    at[rows] = rows
    further = np.empty_like(at)
    while not np.array_equal(np.take(at, at, out=further, mode="clip"), at):
        at, further = further, at
    at[~wanted[at]] = -1
    return at
