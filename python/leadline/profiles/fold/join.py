"""Several `Fold`s as one. Any order and grouping of joins ends in the same profile: sums are exact, extremes and ties
have one answer, and rows get their order only at the end (see finish.py).

No rank may stand in two of them. Time and memory are those of the rows given, without sorting them: a node stands once
in each `Fold`, so rows are added where they belong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.profiles.codetables import CodeTables
from leadline.profiles.fold.state import (
    Column,
    DeviceKind,
    Fold,
    Group,
    Histogram,
    Ids,
    Rank,
    Spread,
    Sums,
    ThreadSums,
)
from leadline.profiles.peaks import OF_A_MOMENT
from leadline.profiles.rollup import Shape
from leadline.profiles.step_rows import together

_NO_LEAST = np.iinfo(np.int64).max
_NO_MOST = np.iinfo(np.int64).min
_BINS = 1 << 10

Key = TypeVar("Key")


class SameRankError(ValueError):
    """A rank stands in two of the parts; `str(error)` is one sentence."""


def join(folds: Sequence[Fold]) -> Fold:
    """All of `folds` as one. Raises SameRankError, and ValueError for none."""
    if not folds:
        raise ValueError("There is nothing to fold: at least one rank is needed.")
    if len(folds) == 1:
        return folds[0]
    keys, files, frame_maps = one_table_of_frames([(one.keys, one.files) for one in folds])
    parent, frame, node_maps = unified(
        [one.parent for one in folds], [new[one.frame] for one, new in zip(folds, frame_maps, strict=True)], len(keys)
    )
    ranks, rank_maps = _ranks(folds)
    devices, device_maps = _devices(folds)
    number = len(parent)
    return Fold(
        by=folds[0].by,
        keys=keys,
        files=files,
        parent=parent,
        frame=frame,
        holders=_holders(folds, node_maps, number),
        sums=_sums(folds, node_maps, device_maps, number),
        spreads=_spreads(folds, node_maps, rank_maps, number),
        histograms=_histograms(folds, node_maps),
        ranks=ranks,
        groups=_joined((one.groups for one in folds), both_groups),
        threads=_joined((one.threads for one in folds), both_threads),
        devices=devices,
        losses=_joined((one.losses for one in folds), lambda one, other: one + other),
        meta=joined_meta([one.meta for one in folds]),
        code=joined_code(one.code for one in folds),
    )


def joined_code(parts: Iterable[CodeTables]) -> CodeTables:
    """All of them, as far as it fits into a file."""
    whole = CodeTables()
    for part in parts:
        whole.join(part)
    whole.narrow()
    return whole


def unified(parents: Sequence[Ids], frames: Sequence[Ids], distinct: int) -> tuple[Ids, Ids, list[Ids]]:
    """Trees laid over each other, level by level: parent and frame of the new nodes, and for every tree the new row of
    each node. `distinct`: how many frames there are. Exact: nothing is hashed."""
    shapes = [Shape(parent) for parent in parents]
    maps = [np.zeros(shape.size, np.int64) for shape in shapes]
    deepest = max(len(shape.level_offsets) - 1 for shape in shapes)
    new_parents, new_frames = [np.full(1, -1, np.int64)], [frames[0][:1].astype(np.int64)]
    known = 1
    for level in range(1, deepest):
        rows = [_level(shape, level) for shape in shapes]
        codes = [
            new[shape.parent[row]] * distinct + frame[row]
            for new, shape, frame, row in zip(maps, shapes, frames, rows, strict=True)
        ]
        found, inverse = np.unique(np.concatenate(codes), return_inverse=True)
        ends = np.cumsum([0, *(len(row) for row in rows)])
        for new, row, (begin, end) in zip(maps, rows, pairwise(ends.tolist()), strict=True):
            new[row] = known + inverse[begin:end]
        new_parents.append(found // distinct)
        new_frames.append(found % distinct)
        known += len(found)
    return np.concatenate(new_parents), np.concatenate(new_frames), maps


def _level(shape: Shape, level: int) -> Ids:
    bounds = shape.level_offsets
    if level >= len(bounds) - 1:
        return np.zeros(0, np.int64)
    return shape.by_level[bounds[level] : bounds[level + 1]]


def _holders(folds: Sequence[Fold], nodes: Sequence[Ids], number: int) -> Ids:
    made = np.zeros(number, np.int64)
    for fold, node in zip(folds, nodes, strict=True):
        made[node] += fold.holders
    return made


def one_table_of_frames(
    tables: Sequence[tuple[Sequence[bytes], Sequence[bytes]]],
) -> tuple[list[bytes], list[bytes], list[Ids]]:
    """Keys and files of several parts as one, and for every part the new row of each frame."""
    known: dict[bytes, int] = {}
    files: list[bytes] = []
    maps = []
    for keys, shown in tables:
        rows = []
        for key, file in zip(keys, shown, strict=True):
            row = known.setdefault(key, len(known))
            if row == len(files):
                files.append(file)
            elif file < files[row]:
                files[row] = file
            rows.append(row)
        maps.append(np.array(rows, np.int64))
    return list(known), files, maps


def _ranks(folds: Sequence[Fold]) -> tuple[list[Rank], list[Ids]]:
    placed = [(rank.order, at, row) for at, fold in enumerate(folds) for row, rank in enumerate(fold.ranks)]
    placed.sort()
    for (one, *_), (other, *_) in pairwise(placed):
        if one == other or (one[1] == other[1] >= 0):
            raise SameRankError(f"Rank {one[1]} is in two of the parts; it would count twice.")
    maps = [np.zeros(len(fold.ranks), np.int64) for fold in folds]
    for new, (_, at, row) in enumerate(placed):
        maps[at][row] = new
    return [folds[at].ranks[row] for _, at, row in placed], maps


def _devices(folds: Sequence[Fold]) -> tuple[list[DeviceKind], list[Ids]]:
    known: dict[DeviceKind, int] = {}
    maps = [np.array([*(known.setdefault(one, len(known)) for one in fold.devices), -1], np.int64) for fold in folds]
    return list(known), maps


def _sums(folds: Sequence[Fold], nodes: Sequence[Ids], devices: Sequence[Ids], number: int) -> dict[Column, Sums]:
    pieces: dict[Column, list[tuple[Sums, Ids]]] = {}
    largest = min(range(len(folds)), key=lambda at: _largest_peak(folds[at]))
    for at, (fold, node, device) in enumerate(zip(folds, nodes, devices, strict=True)):
        for (metric, old, stream), one in fold.sums.items():
            if metric in OF_A_MOMENT and at != largest:
                continue
            pieces.setdefault((metric, int(device[old]), stream), []).append((one, node[one.node]))
    return {column: added(several, number) for column, several in pieces.items()}


def _largest_peak(fold: Fold) -> tuple[int, tuple[bool, int, str]]:
    """Orders by the rank that held most at its peak, the first of equals. Peaks are of moments: those of several ranks
    are never added, and the largest is what is kept."""
    peaks = [(-rank.values["peak"][0], rank.order) for rank in fold.ranks if "peak" in rank.values]
    return min(peaks, default=(1, (True, 0, "")))


def added(pieces: Sequence[tuple[Sums, Ids]], number: int) -> Sums:
    """Rows of several parts at their new nodes, of which there are `number`. No node twice in a part."""
    if len(pieces) == 1:
        return replace(pieces[0][0], node=pieces[0][1])
    count = np.zeros(number, np.int64)
    total = np.zeros((len(pieces[0][0].total), number), np.int64)
    squares = np.zeros((len(pieces[0][0].squares), number), np.int64)
    least, most = np.full(number, _NO_LEAST), np.full(number, _NO_MOST)
    for one, at in pieces:
        count[at] += one.count
        total[:, at] += one.total
        squares[:, at] += one.squares
        least[at] = np.minimum(least[at], one.least)
        most[at] = np.maximum(most[at], one.most)
    node = np.flatnonzero(count)
    return Sums(node, count[node], total[:, node], least[node], most[node], squares[:, node])


def _spreads(folds: Sequence[Fold], nodes: Sequence[Ids], ranks: Sequence[Ids], number: int) -> dict[int, Spread]:
    found: dict[int, list[tuple[Spread, Ids, Ids]]] = {}
    for fold, node, rank in zip(folds, nodes, ranks, strict=True):
        for metric, one in fold.spreads.items():
            found.setdefault(metric, []).append((one, node[one.node], rank))
    return {metric: _spread(pieces, number) for metric, pieces in found.items()}


def _spread(pieces: Sequence[tuple[Spread, Ids, Ids]], number: int) -> Spread:
    count = np.zeros(number, np.int64)
    total = np.zeros((len(pieces[0][0].total), number), np.int64)
    squares = np.zeros((len(pieces[0][0].squares), number), np.int64)
    least, least_rank = np.full(number, _NO_LEAST), np.full(number, _NO_LEAST)
    most, most_rank = np.full(number, _NO_MOST), np.full(number, _NO_LEAST)
    for one, at, rank in pieces:
        count[at] += one.ranks
        total[:, at] += one.total
        squares[:, at] += one.squares
        _extreme(least, least_rank, at, one.least, rank[one.least_rank], one.least < least[at])
        _extreme(most, most_rank, at, one.most, rank[one.most_rank], one.most > most[at])
    node = np.flatnonzero(count)
    return Spread(
        node,
        count[node],
        total[:, node],
        squares[:, node],
        least[node],
        most[node],
        least_rank[node],
        most_rank[node],
    )


def _extreme(best: Ids, best_rank: Ids, at: Ids, value: Ids, rank: Ids, better: NDArray[np.bool_]) -> None:
    """Of equals the first rank, whoever came first."""
    won = better | ((value == best[at]) & (rank < best_rank[at]))
    best[at[won]] = value[won]
    best_rank[at[won]] = rank[won]


def _histograms(folds: Sequence[Fold], nodes: Sequence[Ids]) -> dict[int, Histogram]:
    found: dict[int, list[tuple[Ids, Histogram]]] = {}
    for fold, node in zip(folds, nodes, strict=True):
        for metric, one in fold.histograms.items():
            found.setdefault(metric, []).append((node, one))
    return {metric: _histogram(pieces) for metric, pieces in found.items()}


def _histogram(pieces: Sequence[tuple[Ids, Histogram]]) -> Histogram:
    codes, ranks = np.zeros(0, np.int64), np.zeros(0, np.int32)
    for node, one in pieces:  # one after the other: together they are many times what they become
        codes = np.concatenate((codes, node[one.node] * _BINS + one.bin))
        ranks = np.concatenate((ranks, one.ranks))
        order = np.argsort(codes, kind="stable")
        codes, ranks = codes[order], ranks[order]
        first = np.flatnonzero(np.concatenate((codes[:1] >= 0, codes[1:] != codes[:-1])))
        codes, ranks = codes[first], np.add.reduceat(ranks, first) if len(first) else ranks
    return Histogram.of(codes // _BINS, codes % _BINS, ranks)


def _joined(mappings: Iterable[Mapping[Key, Any]], both: Any) -> dict[Key, Any]:
    made: dict[Key, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            made[key] = both(made[key], value) if key in made else value
    return made


def both_groups(one: Group, other: Group) -> Group:
    """Processes of both."""
    return Group(
        min(one.start_ns, other.start_ns),
        max(one.end_ns, other.end_ns),
        one.complete and other.complete,
        min(one.name, other.name),
    )


def both_threads(one: ThreadSums, other: ThreadSums) -> ThreadSums:
    """Threads of both."""
    return ThreadSums(
        one.mains + other.mains,
        one.operator_ns + other.operator_ns,
        one.data_ns + other.data_ns,
        one.wall_ns + other.wall_ns,
        one.cpu_ns + other.cpu_ns,
        together((one.steps, other.steps)),
    )


def joined_meta(metas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What meta.json says of several parts: texts are the first rank's, `order` says which that is; times span all,
    cost is theirs together, `wall_of_all_ns` is the wall time of all their processes."""
    first = min(metas, key=lambda meta: meta["order"])
    return {
        **first,
        "cost": {name: sum(meta["cost"][name] for meta in metas) for name in first["cost"]},
        "wall_of_all_ns": sum(meta["wall_of_all_ns"] for meta in metas),
        "started_at_ns": min(meta["started_at_ns"] for meta in metas),
        "ended_at_ns": max(meta["ended_at_ns"] for meta in metas),
        "complete": all(meta["complete"] for meta in metas),
    }
