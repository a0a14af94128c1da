"""Many profiles as one: the calling context trees laid over each other, everything else side by side.

Merging in any order and grouping gives the same file, byte for byte: processes stand in the order they began, what
belongs to a process keeps its order, and frames and strings stand in the order of their first use. Memory is
proportional to the sum of the trees, never to the length of the runs. Processes stay apart even when their command
lines are equal: a process frame is made to say its pid and start.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._package import sum_cost
from leadline.profiles.align import on_one_clock
from leadline.profiles.canonical import (
    Ids,
    ProcessKey,
    first_appearance,
    first_use,
    owners,
    process_keys,
    process_order,
    row_maps,
    with_strings_in_use,
)
from leadline.profiles.codetables import merged_code
from leadline.profiles.meta import complete_meta
from leadline.profiles.profile import Profile
from leadline.profiles.rollup import Shape
from leadline.profiles.tables import Array, StringBuilder, Tables, empty_columns
from leadline.profiles.tree import json_object, process_detail
from leadline.schema import TABLES

_NARROW = 40  # nodes per level below which a dictionary is faster than array operations (see rollup.py)
_MAX_DEVICES = 2**15 - 1  # a device is a 16-bit row number
_FRAME_COLUMNS = [column.name for column in TABLES["frames"].columns]
_DETAIL = _FRAME_COLUMNS.index("detail")
_OF_PROCESSES = ("processes", "threads", "devices", "losses")
_IN_ORDER = {
    "open_places": "thread",
    "collectives": "process",
    "steps": "thread",
    "step_walls": "thread",
    "main_threads": "thread",
}


def merge_tables(parts: Sequence[Tables], *, within: bool = False) -> Tables:
    """All `parts` as one set of tables. `within`: nodes of one part that have become alike are one, too.

    Raises ValueError for no parts, and for more than 32,767 devices in all.

    Measurements of one process in several parts add up; `merge_profiles` refuses that. Events are ordered by what
    their own clocks showed (see align.py).
    """
    if not parts:
        raise ValueError("There is nothing to merge: at least one profile is needed.")
    if sum(part.rows("devices") for part in parts) > _MAX_DEVICES:
        raise ValueError(f"These profiles cannot be merged: together they have more than {_MAX_DEVICES} devices.")
    strings = StringBuilder()
    string_maps = [_string_map(part, strings) for part in parts]
    order = process_order(parts)
    frames, frame_of = _merge_frames(parts, strings, string_maps)
    owner = [owners(part, new) for part, new in zip(parts, order, strict=True)]
    shapes = [Shape(part["nodes"]["parent"]) for part in parts]
    parent, frame, node_maps = _merge_nodes(shapes, frame_of, owner, apart=not (within or _in_several(parts)))
    maps = {"strings": string_maps, "nodes": node_maps, "processes": order}
    for table in ("threads", "devices", "losses"):
        maps[table] = row_maps(parts, table, order)
    columns = {
        table: _one_below_the_other(parts, table, maps)
        for table in (*_OF_PROCESSES, *_IN_ORDER, "events", "kernel_events", "metrics")
    }
    for table in _OF_PROCESSES:
        columns[table] = {name: _placed(values, maps[table]) for name, values in columns[table].items()}
    for table, first in _IN_ORDER.items():  # rows of a process keep their order
        by_owner = np.argsort(columns[table][first], kind="stable")
        columns[table] = {name: values[by_owner] for name, values in columns[table].items()}
    of_event = [one[part["events"]["node"].astype(np.int64)] for one, part in zip(owner, parts, strict=True)]
    by_start = np.lexsort((np.concatenate(of_event), columns["events"]["start_ns"]))
    columns["events"] = {name: values[by_start] for name, values in columns["events"].items()}
    by_time = np.argsort(columns["kernel_events"]["time_ns"], kind="stable")
    columns["kernel_events"] = {name: values[by_time] for name, values in columns["kernel_events"].items()}
    columns["metrics"] = _unified_metrics(columns["metrics"])
    used, frame = first_use(frame, len(frames))
    columns["nodes"] = {"parent": parent.astype("<i4"), "frame": frame.astype("<u4")}
    columns["frames"] = {
        column.name: frames[used, number].astype(column.dtype) for number, column in enumerate(TABLES["frames"].columns)
    }
    columns.update(merged_code(parts, strings))
    whole = with_strings_in_use(columns, strings)
    return Tables({name: whole[name] if name in whole else empty_columns(name) for name in TABLES})


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """One profile of several runs or ranks, its events on one clock. Raises ValueError as `merge_tables` does, and
    where two profiles hold the same process, which would count twice.

    Its meta: program, host and what was asked are the earliest profile's; start and end span all; processes and cost
    are theirs together; complete when all are.
    """
    _refuse_the_same_twice(profiles)
    tables = merge_tables([profile.tables for profile in profiles])
    metas = sorted((complete_meta(profile.meta) for profile in profiles), key=_order_of_meta)
    records = sorted((_with_host(record, meta) for meta in metas for record in meta["processes"]), key=_order_of_record)
    began_ns = metas[0]["started_at_ns"]
    together = {
        "wall_ns": min(max(meta["started_at_ns"] + meta["wall_ns"] for meta in metas) - began_ns, _MOST_NS),
        "processes": records,
        "cost": sum_cost(records),
        "complete": all(meta["complete"] for meta in metas),
    }
    return on_one_clock(Profile(tables, {**metas[0], **together}))


_MOST_NS = 2**63 - 1
_COMPOSED = ("wall_ns", "processes", "cost", "complete")


def _order_of_meta(meta: Mapping[str, Any]) -> tuple[int, str]:
    """Earliest first; equal times by the content that stays, so that any grouping finds the same first."""
    kept = {name: value for name, value in meta.items() if name not in _COMPOSED}
    return int(meta["started_at_ns"]), json.dumps(kept, sort_keys=True, default=str)


def _order_of_record(record: Mapping[str, Any]) -> tuple[int, str]:
    began = record.get("started_at_ns")
    kept = {name: value for name, value in record.items() if name != "clock"}  # which on_one_clock changes
    return began if isinstance(began, int) else 0, json.dumps(kept, sort_keys=True, default=str)


def _with_host(record: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """A record that says its machine itself: the merged meta has room for one host only."""
    return {**record} if record.get("host") or not meta.get("host") else {**record, "host": meta["host"]}


def _in_several(parts: Sequence[Tables]) -> list[ProcessKey]:
    """Processes that several parts hold, in order."""
    held = Counter(key for part in parts for key in set(process_keys(part)))
    return sorted(key for key, times in held.items() if times > 1)


def _refuse_the_same_twice(profiles: Sequence[Profile]) -> None:
    for start_ns, pid, *_ in _in_several([profile.tables for profile in profiles]):
        raise ValueError(
            f"These profiles cannot be merged: two of them hold the process {pid} that began at {start_ns} ns; it "
            "would count twice."
        )


def _string_map(part: Tables, strings: StringBuilder) -> Ids:
    return np.array([strings.add(raw) for raw in part.strings.all_raw()], np.int64)


def _placed(values: Array, maps: Sequence[Ids]) -> Array:
    """Values of all parts one below the other, at their new rows."""
    placed = np.empty_like(values)
    placed[np.concatenate(maps)] = values
    return placed


def _merge_frames(
    parts: Sequence[Tables], strings: StringBuilder, string_maps: list[Ids]
) -> tuple[NDArray[np.int64], list[Ids]]:
    """Distinct frames as rows of an int64 matrix in schema order, and for every part the frame of each of its nodes."""
    blocks: list[NDArray[np.int64]] = []
    frame_of: list[Ids] = []
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
) -> tuple[Ids, NDArray[np.int64]]:
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


def _distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ids]:
    """Rows without repetition, in order of first appearance, and for each given row the number of its equal there."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return first_appearance(keys, rows)


def _merge_nodes(
    shapes: list[Shape], frame_of: list[Ids], owner: list[Ids], *, apart: bool
) -> tuple[Ids, Ids, list[Ids]]:
    """One tree: parent and frame of its nodes, and for every part the new row of each node. All roots become node 0;
    then come the nodes of one process after another, each in the order of its part.
    """
    begins = np.cumsum([0, *(shape.size for shape in shapes)])
    order = np.argsort(np.concatenate(owner), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    parent = np.concatenate([shape.parent + begin for shape, begin in zip(shapes, begins, strict=False)])
    parent = place[np.maximum(parent, 0)][order]  # a root's own is not looked at
    depth = np.concatenate([shape.depth for shape in shapes])[order]
    frame = np.concatenate(frame_of)
    frame[begins[:-1]] = frame[0]
    frame = frame[order]
    levels = int(depth.max()) + 1
    # where no two parts hold the same process, and no part a node outside all, only the roots meet
    apart = apart and int((np.concatenate(owner) < 0).sum()) == len(shapes)
    if apart:
        new = np.maximum(np.arange(len(parent)) - len(shapes) + 1, 0)
    else:
        new = (_unify_by_node if len(parent) < _NARROW * levels else _unify_by_level)(parent, depth, frame)
    count = int(new.max()) + 1
    new_parent, new_frame = np.full(count, -1, np.int64), np.empty(count, np.int64)
    new_frame[new] = frame
    below = depth > 0
    new_parent[new[below]] = new[parent[below]]
    return new_parent, new_frame, np.split(new[place], begins[1:-1])


def _unify_by_level(parent: Ids, depth: Array, frame: Ids) -> Ids:
    new = np.zeros(len(parent), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(depth))))
    next_row, frames = 1, int(frame.max()) + 1
    for begin, end in pairwise(bounds[1:].tolist()):
        rows = by_depth[begin:end]
        distinct, ids = first_appearance(new[parent[rows]] * frames + frame[rows], rows)
        new[rows] = ids + next_row
        next_row += len(distinct)
    return first_use(new, next_row)[1]


def _unify_by_node(parent: Ids, depth: Array, frame: Ids) -> Ids:
    new = [0] * len(parent)
    known: dict[tuple[int, int], int] = {}
    rows = zip(parent.tolist(), frame.tolist(), depth.tolist(), strict=True)
    for row, (above, own, level) in enumerate(rows):
        if level:
            new[row] = known.setdefault((new[above], own), len(known) + 1)
    return np.array(new, np.int64)


def _one_below_the_other(parts: Sequence[Tables], table: str, maps: dict[str, list[Ids]]) -> dict[str, Array]:
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
