"""Call paths that few ranks have and that take little, as one node below the path they come from: a job of thousands of
ranks has some of each rank's own, and its file would grow with the ranks. Done once, after the whole reduction, since
what is rare is known only then; how many paths it were is counted as a loss.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.profiles.fold.keys import frame_key, key_parts
from leadline.profiles.fold.state import Column, Fold, Histogram, Ids, Spread, Sums
from leadline.profiles.fold.wide import as_int64
from leadline.profiles.rollup import Shape, subtree_sums
from leadline.profiles.tree import PRUNED_KIND
from leadline.schema import FrameKind, LossKind

FEWEST_RANKS = 64
"""Of fewer every path stays."""
_RARE = 0.01
_LITTLE = 1e-3
"""Of what a rank measured of any metric, on those ranks that have the path."""
_WHOLE = 2.0**48
_TOGETHER = frame_key((PRUNED_KIND, b"(paths of few ranks)", b"", 0, 0, b"", 0, b""))
_STAY = (int(FrameKind.ROOT), int(FrameKind.PROCESS), int(FrameKind.THREAD))


def with_rare_together(fold: Fold) -> Fold:
    """`fold` itself where it has few ranks or no such path. Paths of ranks that stand `alone` in it stay."""
    ranks = len(fold.ranks)
    if ranks < FEWEST_RANKS:
        return fold
    most = max(1, int(_RARE * ranks))
    shape = Shape(fold.parent)
    kinds = np.array([key_parts(key)[0] for key in fold.keys], np.int64)[fold.frame]
    few = (fold.holders > 0) & (fold.holders <= most) & ~np.isin(kinds, (*_STAY, PRUNED_KIND))
    rare = few & (_largest_share(fold, shape) * ranks < _LITTLE * np.maximum(fold.holders, 1))
    stays = [np.flatnonzero(~rare), *(one.node for sums in fold.alone.values() for one in sums.values())]
    rare = ~_with_ancestors(fold.parent, np.concatenate(stays))
    if not rare.any():
        return fold
    return _without(fold, rare, most)


def _largest_share(fold: Fold, shape: Shape) -> NDArray[np.float64]:
    """For every node the largest share of any metric, and of the measurements, that it has with its subtree."""
    own: dict[int, NDArray[np.float64]] = {}
    counts = np.zeros(shape.size)
    for (metric, _, _), one in fold.sums.items():
        values = own.setdefault(metric, np.zeros(shape.size))
        values[one.node] += np.abs(as_int64(one.total).astype(np.float64))
        counts[one.node] += one.count
    largest = np.zeros(shape.size)
    for values in (*own.values(), counts):
        if total := float(values.sum()):
            shares = subtree_sums(shape, np.ceil(values / total * _WHOLE).astype(np.int64))
            np.maximum(largest, shares / _WHOLE, out=largest)
    return largest


def _with_ancestors(parent: Ids, nodes: Ids) -> NDArray[np.bool_]:
    marked = np.zeros(len(parent), np.bool_)
    rows = np.unique(nodes)
    while len(rows):
        marked[rows] = True
        above = np.unique(parent[rows])
        above = above[above >= 0]
        rows = above[~marked[above]]
    return marked


def _without(fold: Fold, rare: NDArray[np.bool_], most: int) -> Fold:
    kept = np.flatnonzero(~rare)
    new = np.cumsum(~rare) - 1
    at = np.where(rare, np.maximum(fold.parent, 0), np.arange(len(rare)))  # the nearest node that is kept
    while not np.array_equal(further := at[at], at):
        at = further
    holder = np.unique(at[rare])
    place = np.full(len(rare), -1, np.int64)
    place[holder] = len(kept) + np.arange(len(holder))
    node = np.where(rare, place[at], new)
    holders = np.zeros(len(kept) + len(holder), np.int64)
    np.maximum.at(holders, node, fold.holders)
    together = len(fold.keys)
    paths = int(rare.sum())
    said = (
        f"Paths that at most {most} of {len(fold.ranks)} ranks have, and that take less than {_LITTLE:.1%} of "
        f"these, are combined below their parent path; merge with --all-paths to keep each."
    )
    first = min(fold.groups)
    return replace(
        fold,
        keys=[*fold.keys, _TOGETHER],
        files=[*fold.files, b""],
        parent=np.concatenate((np.where(kept > 0, new[np.maximum(fold.parent[kept], 0)], -1), new[holder])),
        frame=np.concatenate((fold.frame[kept], np.full(len(holder), together))),
        holders=holders,
        sums=_moved(fold.sums, node),
        spreads={metric: _spread(one, rare, node) for metric, one in fold.spreads.items()},
        histograms={metric: _histogram(one, rare, node) for metric, one in fold.histograms.items()},
        losses={**fold.losses, (first, int(LossKind.PATHS_FOLDED), said): paths},
        alone={row: _moved(sums, node) for row, sums in fold.alone.items()},
    )


def _moved(sums: Mapping[Column, Sums], node: Ids) -> dict[Column, Sums]:
    return {column: _added(one, node) for column, one in sums.items()}


def _added(one: Sums, node: Ids) -> Sums:
    """Rows at their new nodes, those of one node added up."""
    found, row = np.unique(node[one.node], return_inverse=True)
    if len(found) == len(one.node):
        order = np.argsort(row, kind="stable")
        return Sums(
            found,
            one.count[order],
            one.total[:, order],
            one.least[order],
            one.most[order],
            one.squares[:, order],
        )
    count = np.zeros(len(found), np.int64)
    total, squares = (np.zeros((len(limbs), len(found)), np.int64) for limbs in (one.total, one.squares))
    least, most = np.full(len(found), np.iinfo(np.int64).max), np.full(len(found), np.iinfo(np.int64).min)
    np.add.at(count, row, one.count)
    for limbs, sums in ((one.total, total), (one.squares, squares)):
        for limb, into in zip(limbs, sums, strict=True):
            np.add.at(into, row, limb)
    np.minimum.at(least, row, one.least)
    np.maximum.at(most, row, one.most)
    return Sums(found, count, total, least, most, squares)


def _spread(one: Spread, rare: NDArray[np.bool_], node: Ids) -> Spread:
    stays = ~rare[one.node]
    return Spread(
        node[one.node[stays]],
        one.ranks[stays],
        one.total[:, stays],
        one.squares[:, stays],
        one.least[stays],
        one.most[stays],
        one.least_rank[stays],
        one.most_rank[stays],
    )


def _histogram(one: Histogram, rare: NDArray[np.bool_], node: Ids) -> Histogram:
    stays = ~rare[one.node]
    return Histogram.of(node[one.node[stays]], one.bin[stays], one.ranks[stays])
