"""The tree that the HTML page draws: bounded in size, whatever the profile.

A node is kept while some drawn metric has at least SMALLEST_SHARE of its total there or below, and at most MOST_NODES
are kept. What is cut off hangs as one `pruned` node below its nearest kept ancestor, with its values and the number
of paths, so that every width and every sum stays right and the page can say what it does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import nearest, subtree_shares
from leadline.analysis.origin import is_library
from leadline.profiles import Tree
from leadline.schema import FrameKind

SMALLEST_SHARE = 0.0001
MOST_NODES = 20_000
PRUNED = "pruned"

_CALLS = "calls"


@dataclass(frozen=True)
class Flame:
    """`data` is what the page reads; `kept_row` maps a row of the tree to a row of `data`, a cut one to its kept
    ancestor.
    """

    data: dict[str, Any]
    kept_row: NDArray[np.int64]


def flame(tree: Tree, smallest_share: float = SMALLEST_SHARE, most_nodes: int = MOST_NODES) -> Flame:
    """The pruned tree of every additive metric that was measured, and of the calls of operators."""
    exclusive = {
        str(info.kind): np.maximum(tree.exclusive(info.kind).sum, 0) for info in tree.measured if info.additive
    }
    units = {str(info.kind): (info.unit, info.doc) for info in tree.measured if info.additive}
    exclusive[_CALLS] = tree.exclusive("call_time").count
    units[_CALLS] = ("1", "calls of operators and regions")
    exclusive = {name: values for name, values in exclusive.items() if values.any()}

    rank = _largest_share(tree, exclusive)
    limit = smallest_share
    if int((rank >= limit).sum()) > most_nodes:
        limit = float(np.nextafter(np.sort(rank)[-most_nodes], 2.0))
    kept = rank >= limit
    kept[0] = True
    rows = np.flatnonzero(kept)
    new_row = np.full(len(tree), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    new_row = new_row[nearest(tree.shape, kept)]  # a cut row takes the number of its nearest kept ancestor

    cut_rows = np.flatnonzero(~kept)
    holders, holder_of = np.unique(new_row[cut_rows], return_inverse=True)
    parents = np.concatenate((np.where(rows > 0, new_row[np.maximum(tree.shape.parent[rows], 0)], -1), holders))
    metrics = []
    for name, values in exclusive.items():
        below = np.zeros(len(holders), np.int64)
        np.add.at(below, holder_of, values[cut_rows])
        column = np.concatenate((values[rows], below))
        nonzero = np.flatnonzero(column)
        unit, doc = units[name]
        metrics.append(
            {"name": name, "unit": unit, "doc": doc, "rows": nonzero.tolist(), "values": column[nonzero].tolist()}
        )
    frames, frame_row = _frames(tree, rows)
    kinds = max([len(FrameKind), *(kind + 1 for kind in frames["kind"])])  # newer releases know more
    cut_counts = np.bincount(holder_of, minlength=len(holders)).tolist() if len(holders) else []
    pruned_frames = {count: len(frames["name"]) + i for i, count in enumerate(sorted(set(cut_counts)))}
    for count in pruned_frames:
        _append_pruned(frames, kinds, count, limit)
    return Flame(
        {
            "kinds": [str(FrameKind(kind)) for kind in range(kinds)] + [PRUNED],
            "frames": frames,
            "parent": parents.tolist(),
            "frame": frame_row + [pruned_frames[count] for count in cut_counts],
            "metrics": metrics,
            "pruned": {"nodes": len(cut_rows), "share": limit},
        },
        new_row,
    )


def _largest_share(tree: Tree, exclusive: dict[str, NDArray[np.int64]]) -> NDArray[np.float64]:
    """For every node the largest share of any metric that it has with its subtree."""
    largest = np.zeros(len(tree), np.float64)
    for values in exclusive.values():
        np.maximum(largest, subtree_shares(tree.shape, values), out=largest)
    return largest


def _frames(tree: Tree, rows: NDArray[np.int64]) -> tuple[dict[str, list[Any]], list[int]]:
    """Columns of the frames in use, and the frame of every kept row."""
    used, frame_row = np.unique(tree.frame_of[rows], return_inverse=True)
    text = tree.tables.strings
    frames: dict[str, list[Any]] = {
        "kind": tree.frames["kind"][used].tolist(),
        "line": tree.frames["line"][used].tolist(),
    }
    for column in ("name", "file", "module", "detail"):
        frames[column] = [text[row] for row in tree.frames[column][used].tolist()]
    python = int(FrameKind.PYTHON)
    frames["library"] = [
        int(kind == python and is_library(file)) for kind, file in zip(frames["kind"], frames["file"], strict=True)
    ]
    return frames, frame_row.tolist()


def _append_pruned(frames: dict[str, list[Any]], kind: int, count: int, limit: float) -> None:
    name = f"({count:,} path{'s' if count != 1 else ''} below {100 * limit:.2g} %)"
    row = {"kind": kind, "line": 0, "name": name, "file": "", "module": "", "detail": "", "library": 0}
    for column, value in row.items():
        frames[column].append(value)
