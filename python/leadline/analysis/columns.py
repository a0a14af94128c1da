"""What is asked of a tree as whole columns: the nearest node above that ..., sums over subtrees, groups of equal rows.

Every column has one row per node; -1 stands for "none". No function walks node by node in Python unless the tree is
so deep and thin that whole-array steps per level would be slower. `Shape` is profiles' description of a tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.rollup import Shape, nearest, subtree_sums

__all__ = [
    "Mask",
    "Rows",
    "above",
    "at_rows",
    "distinct",
    "factorized",
    "group_sums",
    "nearest",
    "preorder",
    "subtree_shares",
    "subtree_sums",
    "sums_in_order",
]

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def above(shape: Shape, column: Rows) -> Rows:
    """`column` read at the parent of every node; -1 at the root."""
    read = column[np.maximum(shape.parent, 0)]
    read[:1] = -1
    return read


def at_rows(column: NDArray[np.generic], rows: Rows, none: int = -1) -> Rows:
    """`column[rows]` as 64-bit numbers, `none` where the row is -1."""
    if not len(column):
        return np.full(len(rows), none, np.int64)
    read = column.take(rows, mode="clip").astype(np.int64)
    read[rows < 0] = none
    return read


def subtree_shares(shape: Shape, values: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share, 0 to 1, that every node has with all below it of the sum of `values`, none of which is negative; zeros
    where that is zero. Values are scaled first, so that no sum is too large."""
    most = int(values.max(initial=0))
    if most <= 0:
        return np.zeros(shape.size, np.float64)
    room = (1 << 62) // max(shape.size, 1)
    fitting = (values / most * room).astype(np.int64) if most > room else values
    sums = subtree_sums(shape, fitting)
    shares: NDArray[np.float64] = sums / sums[0]
    return shares


def preorder(shape: Shape) -> tuple[Rows, Rows]:
    """(place of every node in a depth-first walk, nodes of its subtree): the subtree of a node are the places
    place..place+size-1."""
    size = subtree_sums(shape, np.ones(shape.size, np.int64))
    place = np.zeros(shape.size, np.int64)  # at first, distance from the parent: 1 + what earlier siblings hold
    rows = shape.by_parent
    before = np.cumsum(size[rows]) - size[rows]
    first = shape.child_offsets[shape.parent[rows]]
    place[rows] = 1 + before - before[first] if len(rows) else 0
    at = shape.parent.copy()
    at[:1] = 0
    while at.any():
        place += place[at]
        at = at[at]
    return place, size


def distinct(values: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Different values in order, and for every row the number of its value, as `np.unique` with its inverse; without
    sorting where the values lie close enough together for a table."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        found, numbers = np.unique(values, return_inverse=True)
        return found, numbers
    here = np.zeros(high - low + 1, np.bool_)
    here[values - low] = True
    return np.flatnonzero(here) + low, (np.cumsum(here) - 1)[values - low]


def factorized(*columns: NDArray[np.int64]) -> Rows:
    """Equal numbers for equal rows, counted from 0; two columns at a time, so that products stay within 64 bits."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        found, part = distinct(column)
        numbers = distinct(numbers * len(found) + part)[1]
    return numbers


def group_sums(groups: Rows, values: NDArray[np.int64], number: int) -> Rows:
    """Sums of `values` by group 0..number-1; rows of the group -1 count for none. Exact, unlike `np.bincount` with
    weights, which adds floating point numbers."""
    sums = np.zeros(number, np.int64)
    inside = groups >= 0
    np.add.at(sums, groups[inside], values[inside])
    return sums


def sums_in_order(groups: Rows, values: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(group, sum of its values) of every group that occurs, the one that occurs first first."""
    found, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    sums = group_sums(numbers, values, len(found))
    order = np.argsort(first)
    return list(zip(found[order].tolist(), sums[order].tolist(), strict=True))
