"""The profile as the page holds it: the bytes of a `.leadline` file, of bounded size whatever the profile.

The whole file where it fits. Else the trace window is left out, and then call paths: those with the smallest share of
every metric hang as one `pruned` node below their nearest kept ancestor, with their values, so that every width and
every sum stays right. `meta.pruned` says what is not there.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.columns import nearest, subtree_shares
from leadline.profiles import Profile, Tree
from leadline.profiles.tables import Array, StringBuilder, Tables, empty_columns
from leadline.profiles.tree import PRUNED_KIND
from leadline.profiles.writer import add_columns
from leadline.schema import FORMAT_VERSION, TABLES, FrameKind

MOST_BYTES = 24 << 20
"""Of the packed profile; the page is a third larger."""
_NOT_SHOWN = ("rank_histogram", "node_ranks", "metric_squares", "code_objects", "code_bytes")
"""What folding once more needs, and machine code, of which the page shows the lines."""
_UNPACKED_BYTES = 1 << 30
_KEPT_KINDS = (FrameKind.ROOT, FrameKind.PROCESS, FrameKind.THREAD)


@dataclass(frozen=True)
class Embedded:
    """`row_of`: where a row of the profile's tree is in the one embedded (its nearest kept ancestor); None where that
    is the same."""

    data: bytes
    row_of: NDArray[np.int64] | None

    def row(self, row: int) -> int:
        return row if self.row_of is None else int(self.row_of[row])


def embedded(profile: Profile, most_bytes: int = MOST_BYTES) -> Embedded:
    """`profile` as at most `most_bytes`, as far as its names allow."""
    tables = _without(profile.tables, *_NOT_SHOWN)
    meta: dict[str, Any] = {name: value for name, value in profile.meta.items() if name != "report"}  # beside it
    data = packed(tables, meta) if _unpacked(tables) <= _UNPACKED_BYTES else b""
    if data and len(data) <= most_bytes:
        return Embedded(data, None)
    said = []
    if events := tables.rows("events"):
        tables = _without(tables, "events")
        said.append(f"the trace window of {events:,} events is left out")
        meta["pruned"] = {"said": said[0]}
        data = packed(tables, meta) if _unpacked(tables) <= _UNPACKED_BYTES else b""
        if data and len(data) <= most_bytes:
            return Embedded(data, None)
    most_nodes = len(profile.tree)
    while most_nodes > 1:
        most_nodes = max(1, min(most_nodes // 2, int(most_nodes * most_bytes / len(data)) if data else most_nodes))
        cut, row_of, limit = cut_tree(profile.tree, tables, most_nodes)
        below = f"{int((row_of[:-1] == row_of[1:]).sum()):,} call paths below {100 * limit:.2g} % of every metric"
        meta["pruned"] = {"said": "; ".join([*said, f"{below} are drawn together"])}
        data = packed(cut, meta)
        if len(data) <= most_bytes:
            break
    return Embedded(data, row_of)


def _without(tables: Tables, *names: str) -> Tables:
    return Tables({**tables.columns, **{name: empty_columns(name) for name in names}})


def _unpacked(tables: Tables) -> int:
    return sum(values.nbytes for columns in tables.columns.values() for values in columns.values())


def packed(tables: Tables, meta: Mapping[str, Any]) -> bytes:
    """The bytes of a `.leadline` file."""
    whole = {**meta, "format": {"name": "leadline", "version": FORMAT_VERSION}}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        text = json.dumps(whole, separators=(",", ":"))
        archive.writestr(zipfile.ZipInfo("meta.json"), text, zipfile.ZIP_DEFLATED)
        add_columns(archive, tables)
    return buffer.getvalue()


def cut_tree(tree: Tree, tables: Tables, most_nodes: int) -> tuple[Tables, NDArray[np.int64], float]:
    """`tables` with about `most_nodes` nodes, the new row of every old one, and the share below which it was cut."""
    rank = _largest_share(tree)
    limit = float(np.nextafter(np.sort(rank)[-most_nodes], 2.0)) if most_nodes < len(rank) else 0.0
    kept = (rank >= limit) | np.isin(tree.kinds, [int(kind) for kind in _KEPT_KINDS])
    kept[0] = True
    rows = np.flatnonzero(kept)
    new_row = np.full(len(tree), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    row_of: NDArray[np.int64] = new_row[nearest(tree.shape, kept)]  # a cut row takes its nearest kept ancestor's

    holders, counts = np.unique(row_of[~kept], return_counts=True)
    place = np.full(len(rows), -1, np.int64)  # of the pruned node below a kept one
    place[holders] = len(rows) + np.arange(len(holders))
    metric_row = np.where(kept, row_of, place[row_of])
    used, frame = np.unique(tree.frame_of[rows], return_inverse=True)
    several, which = np.unique(counts, return_inverse=True)
    names = [f"({count:,} path{'s' if count != 1 else ''} below {100 * limit:.2g} %)" for count in several.tolist()]
    parents = np.where(rows > 0, row_of[np.maximum(tree.shape.parent[rows], 0)], -1)
    columns: dict[str, dict[str, Array]] = {name: dict(tables[name]) for name in TABLES if name != "strings"}
    columns["frames"] = _frames(tables, used, len(several))
    columns["nodes"] = {
        "parent": np.concatenate((parents, holders)).astype("<i4"),
        "frame": np.concatenate((frame, len(used) + which)).astype("<u4"),
    }
    columns["metrics"] = _summed(tables["metrics"], metric_row)
    columns["rank_metrics"] = _summed(tables["rank_metrics"], metric_row, ("rank",))
    spreads = columns["rank_stats"]
    shown = kept[spreads["node"].astype(np.int64)]
    columns["rank_stats"] = {name: values[shown] for name, values in spreads.items()}
    for name in ("processes", "threads", "events", "rank_stats"):
        columns[name]["node"] = row_of[columns[name]["node"].astype(np.int64)].astype("<u4")
    return _with_strings(tables, columns, names), row_of, limit


def _largest_share(tree: Tree) -> NDArray[np.float64]:
    """For every node the largest share of any additive metric, and of the calls, that it has with its subtree."""
    largest = np.zeros(len(tree), np.float64)
    columns = [tree.drawn(info.kind) for info in tree.measured if info.additive]
    for values in [*columns, tree.exclusive("call_time").count]:
        np.maximum(largest, subtree_shares(tree.shape, np.maximum(values, 0)), out=largest)
    return largest


def _frames(tables: Tables, used: NDArray[np.int64], pruned: int) -> dict[str, Array]:
    """The frames in use, and `pruned` more whose names are filled in later."""
    made = {}
    for name, values in tables["frames"].items():
        made[name] = np.concatenate((values[used], np.zeros(pruned, values.dtype)))
    made["kind"][len(used) :] = PRUNED_KIND
    return made


def _summed(metrics: Mapping[str, Array], row_of: NDArray[np.int64], also: tuple[str, ...] = ()) -> dict[str, Array]:
    """The rows of `metrics` at their new nodes, those of one node, metric, device and stream (and `also`) as one."""
    names = ("metric", "device", "stream", *also)
    node = row_of[metrics["node"].astype(np.int64)]
    keys = [node, *(metrics[name].astype(np.int64) for name in names)]
    order = np.lexsort(keys[::-1])
    keys = [key[order] for key in keys]
    changes = np.zeros(len(node), np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(changes)
    made: dict[str, Array] = {"node": keys[0][first].astype("<u4")}
    for name in names:
        made[name] = metrics[name][order][first]
    for name, fold in (("count", np.add), ("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
        made[name] = fold.reduceat(metrics[name][order], first) if len(first) else metrics[name][:0]
    squares = metrics["sum_squares"]
    made["sum_squares"] = np.add.reduceat(squares[order], first) if len(first) else squares[:0]
    return made


def _with_strings(tables: Tables, columns: dict[str, dict[str, Array]], pruned: list[str]) -> Tables:
    """The columns with the texts that they use, and the names of pruned frames."""
    old = tables.strings
    builder = StringBuilder()
    known: dict[int, int] = {}
    for name, table in TABLES.items():
        for column in table.columns:
            if column.ref != "strings":
                continue
            values = columns[name][column.name]
            for row in np.unique(values).tolist():
                if row not in known:
                    known[row] = builder.add(old.raw(row))
            rows, where = np.unique(values, return_inverse=True)
            new = np.array([known[row] for row in rows.tolist()], values.dtype)
            columns[name][column.name] = new[where] if len(new) else values
    if pruned:
        columns["frames"]["name"][-len(pruned) :] = [builder.add(name) for name in pruned]
    return Tables({**columns, "strings": builder.columns()})
