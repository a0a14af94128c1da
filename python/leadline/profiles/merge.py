"""Many profiles as one: the calling context trees laid over each other, everything else side by side.

`merge_tables` is associative and commutative up to the order of rows (and the rounding of `sum_squares`), so any tree
of merges gives the same profile. Memory is proportional to the sum of the trees, never to the length of the runs.
Processes stay apart even when their command lines are equal: a process frame is made to say its pid and start.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline._package import sum_cost
from leadline.profiles.meta import complete_meta
from leadline.profiles.profile import Profile
from leadline.profiles.rollup import Shape
from leadline.profiles.tables import Array, StringBuilder, Tables
from leadline.profiles.tree import json_object, process_detail
from leadline.schema import TABLES

_Ids = NDArray[np.int64]
_NARROW = 40  # nodes per level below which a dictionary is faster than array operations (see rollup.py)
_MAX_DEVICES = 2**15 - 1  # a device is a 16-bit row number
_FRAME_COLUMNS = [column.name for column in TABLES["frames"].columns]
_DETAIL = _FRAME_COLUMNS.index("detail")
_SIDE_BY_SIDE = ("processes", "threads", "devices", "losses", "events", "metrics")


def merge_tables(parts: Sequence[Tables]) -> Tables:
    """All `parts` as one set of tables. Raises ValueError for no parts, and for more than 32,767 devices in all."""
    if not parts:
        raise ValueError("There is nothing to merge: at least one profile is needed.")
    if sum(part.rows("devices") for part in parts) > _MAX_DEVICES:
        raise ValueError(f"These profiles cannot be merged: together they have more than {_MAX_DEVICES} devices.")
    strings = StringBuilder()
    string_maps = [_string_map(part, strings) for part in parts]
    frames, frame_of = _merge_frames(parts, strings, string_maps)
    parent, frame, node_maps = _merge_nodes([Shape(part["nodes"]["parent"]) for part in parts], frame_of, len(frames))
    maps = {"strings": string_maps, "nodes": node_maps}
    for table in ("processes", "threads", "devices"):
        maps[table] = _row_maps(parts, table)
    columns = {table: _one_below_the_other(parts, table, maps) for table in _SIDE_BY_SIDE}
    order = np.argsort(columns["events"]["start_ns"], kind="stable")
    columns["events"] = {name: values[order] for name, values in columns["events"].items()}
    columns["metrics"] = _unified_metrics(columns["metrics"])
    columns["strings"] = strings.columns()
    columns["nodes"] = {"parent": parent.astype("<i4"), "frame": frame.astype("<u4")}
    columns["frames"] = {
        column.name: frames[:, number].astype(column.dtype) for number, column in enumerate(TABLES["frames"].columns)
    }
    return Tables({name: columns[name] for name in TABLES})


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """One profile of several runs or ranks; raises ValueError as `merge_tables` does.

    Its meta: program, host and what was asked are the earliest profile's; start and end span all; processes and cost
    are theirs together; complete when all are.
    """
    tables = merge_tables([profile.tables for profile in profiles])
    metas = sorted((complete_meta(profile.meta) for profile in profiles), key=lambda meta: int(meta["started_at_ns"]))
    records = [record for meta in metas for record in meta["processes"]]
    began_ns = metas[0]["started_at_ns"]
    together = {
        "wall_ns": max(meta["started_at_ns"] + meta["wall_ns"] for meta in metas) - began_ns,
        "processes": records,
        "cost": sum_cost(records),
        "complete": all(meta["complete"] for meta in metas),
    }
    return Profile(tables, {**metas[0], **together})


def _string_map(part: Tables, strings: StringBuilder) -> _Ids:
    return np.array([strings.add(raw) for raw in part.strings.all_raw()], np.int64)


def _row_maps(parts: Sequence[Tables], table: str) -> list[_Ids]:
    begins = np.cumsum([0, *(part.rows(table) for part in parts)])
    return [np.arange(begin, end, dtype=np.int64) for begin, end in pairwise(begins.tolist())]


def _merge_frames(
    parts: Sequence[Tables], strings: StringBuilder, string_maps: list[_Ids]
) -> tuple[NDArray[np.int64], list[_Ids]]:
    """Distinct frames as rows of an int64 matrix in schema order, and for every part the frame of each of its nodes."""
    blocks: list[NDArray[np.int64]] = []
    frame_of: list[_Ids] = []
    begin = 0
    for part, string_map in zip(parts, string_maps, strict=True):
        block = np.column_stack([_as_int64(part["frames"][name]) for name in _FRAME_COLUMNS])
        for number, column in enumerate(TABLES["frames"].columns):
            if column.ref == "strings":
                block[:, number] = string_map[block[:, number]]
        own, block = _with_process_frames(part, block, strings)
        frame_of.append(own + begin)
        blocks.append(block)
        begin += len(block)
    every = np.concatenate(blocks)
    used, position = np.unique(np.concatenate(frame_of), return_inverse=True)
    distinct, ids = _distinct_rows(every[used])
    ends = np.cumsum([len(own) for own in frame_of])[:-1]
    return distinct, np.split(ids[position], ends)


def _with_process_frames(
    part: Tables, frames: NDArray[np.int64], strings: StringBuilder
) -> tuple[_Ids, NDArray[np.int64]]:
    """A frame of its own for every process: its detail says pid and start_ns. Gives frame of node, and the longer
    matrix."""
    own = part["nodes"]["frame"].astype(np.int64)
    processes = part["processes"]
    added: list[NDArray[np.int64]] = []
    rows = zip(processes["node"].tolist(), processes["pid"].tolist(), processes["start_ns"].tolist(), strict=True)
    for node, pid, start_ns in rows:
        frame = int(part["nodes"]["frame"][node])
        known = json_object(part.strings[int(part["frames"]["detail"][frame])])
        detail = process_detail(pid, start_ns, known)
        row = frames[frame].copy()
        row[_DETAIL] = strings.add(detail)
        own[node] = len(frames) + len(added)
        added.append(row)
    return own, np.concatenate([frames, np.array(added, np.int64)]) if added else frames


def _distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], _Ids]:
    """Rows without repetition, in order of first appearance, and for each given row the number of its equal there."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return _first_appearance(keys, rows)


def _first_appearance(keys: Array, rows: Array) -> tuple[Array, _Ids]:
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[inverse.ravel()]


def _merge_nodes(shapes: list[Shape], frame_of: list[_Ids], frames: int) -> tuple[_Ids, _Ids, list[_Ids]]:
    """One tree: parent and frame of its nodes, and for every part the new row of each node. All roots become node 0."""
    begins = np.cumsum([0, *(shape.size for shape in shapes)])
    parent = np.concatenate([shape.parent + begin for shape, begin in zip(shapes, begins, strict=False)])
    depth = np.concatenate([shape.depth for shape in shapes])
    frame = np.concatenate(frame_of)
    frame[begins[:-1]] = frame[0]
    levels = int(depth.max()) + 1
    if len(parent) < _NARROW * levels:
        new = _unify_by_node(parent, depth, frame)
    else:
        new = _unify_by_level(parent, depth, frame, frames)
    count = int(new.max()) + 1
    new_parent, new_frame = np.full(count, -1, np.int64), np.empty(count, np.int64)
    new_frame[new] = frame
    below = depth > 0
    new_parent[new[below]] = new[parent[below]]
    return new_parent, new_frame, np.split(new, begins[1:-1])


def _unify_by_level(parent: _Ids, depth: Array, frame: _Ids, frames: int) -> _Ids:
    new = np.zeros(len(parent), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(depth))))
    next_row = 1
    for begin, end in pairwise(bounds[1:].tolist()):
        rows = by_depth[begin:end]
        distinct, ids = _first_appearance(new[parent[rows]] * frames + frame[rows], rows)
        new[rows] = ids + next_row
        next_row += len(distinct)
    return new


def _unify_by_node(parent: _Ids, depth: Array, frame: _Ids) -> _Ids:
    new = [0] * len(parent)
    known: dict[tuple[int, int], int] = {}
    rows = zip(parent.tolist(), frame.tolist(), depth.tolist(), strict=True)
    for row, (above, own, level) in enumerate(rows):
        if level:
            new[row] = known.setdefault((new[above], own), len(known) + 1)
    return np.array(new, np.int64)


def _one_below_the_other(parts: Sequence[Tables], table: str, maps: dict[str, list[_Ids]]) -> dict[str, Array]:
    """The rows of all parts, with every id replaced by its new one; -1 stays -1."""
    merged = {}
    for column in TABLES[table].columns:
        ref = "devices" if column.name == "device" else column.ref
        pieces = []
        for number, part in enumerate(parts):
            values = part[table][column.name]
            if ref and len(values):
                new = np.append(maps[ref][number], -1)[values.astype(np.int64)]
                values = new.astype(column.dtype)
            pieces.append(values)
        merged[column.name] = np.concatenate(pieces)
    return merged


def _unified_metrics(rows: dict[str, Array]) -> dict[str, Array]:
    """One row per (node, metric, device, stream), in that order; rows that counted nothing go."""
    counted = np.flatnonzero(rows["count"])
    keys = [rows[name][counted] for name in ("stream", "device", "metric", "node")]
    order = counted[np.lexsort(keys)]
    if not len(order):
        return {name: values[:0] for name, values in rows.items()}
    changes = np.zeros(len(order), np.bool_)
    changes[0] = True
    for name in ("stream", "device", "metric", "node"):
        values = rows[name][order]
        changes[1:] |= values[1:] != values[:-1]
    first = np.flatnonzero(changes)
    unified = {name: rows[name][order[first]] for name in ("node", "metric", "device", "stream")}
    for name, operation in (("count", np.add), ("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
        unified[name] = operation.reduceat(rows[name][order], first)
    unified["sum_squares"] = np.add.reduceat(rows["sum_squares"][order], first)
    return {column.name: unified[column.name] for column in TABLES["metrics"].columns}


def _as_int64(values: Array) -> NDArray[np.int64]:
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
