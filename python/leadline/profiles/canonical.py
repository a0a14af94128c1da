"""The one order that rows of merged profiles stand in, so that merging in any order and grouping gives the same bytes.

Processes stand in the order they began; what belongs to a process keeps the order that its own file gave it; frames and
strings stand in the order of their first use. Rows outside every process, which no writer makes, keep the order of the
parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.tables import Array, StringBuilder, Tables
from leadline.profiles.tree import json_object, process_detail
from leadline.schema import TABLES

Ids = NDArray[np.int64]
ProcessKey = tuple[int, int, str, bytes]


def process_keys(part: Tables) -> list[ProcessKey]:
    """What tells every process from all others and gives their order: start, pid, the frame's detail, command line."""
    processes, frames, strings = part["processes"], part["frames"], part.strings
    names = ("start_ns", "pid", "node", "name")
    keys = []
    for start_ns, pid, node, name in zip(*(processes[column].tolist() for column in names), strict=True):
        known = json_object(strings[int(frames["detail"][int(part["nodes"]["frame"][node])])])
        keys.append((start_ns, pid, process_detail(pid, start_ns, known), strings.raw(name)))
    return keys


def process_order(parts: Sequence[Tables]) -> list[Ids]:
    """For every part the new row of each of its processes."""
    keys = [(key, at, row) for at, part in enumerate(parts) for row, key in enumerate(process_keys(part))]
    order = [np.zeros(part.rows("processes"), np.int64) for part in parts]
    for new, (_, at, row) in enumerate(sorted(keys)):
        order[at][row] = new
    return order


def owners(part: Tables, order: Ids) -> Ids:
    """For every node the new row of the outermost process that it stands below, -1 outside all."""
    parent = part["nodes"]["parent"].tolist()
    found = [-1] * len(parent)
    for node, new in zip(part["processes"]["node"].tolist(), order.tolist(), strict=True):
        found[node] = new
    found[0] = -1
    for row in range(1, len(parent)):
        above = found[parent[row]]
        if above >= 0:
            found[row] = above
    return np.array(found, np.int64)


def row_maps(parts: Sequence[Tables], table: str, order: Sequence[Ids]) -> list[Ids]:
    """For every part the new row of each row of a table that belongs to processes."""
    owner = [new[part[table]["process"].astype(np.int64)] for part, new in zip(parts, order, strict=True)]
    by_process = np.argsort(np.concatenate(owner), kind="stable")
    places = np.empty(len(by_process), np.int64)
    places[by_process] = np.arange(len(by_process))
    begins = np.cumsum([0, *(len(one) for one in owner)])
    return [places[begin:end] for begin, end in pairwise(begins.tolist())]


def first_use(ids: Ids, count: int) -> tuple[Ids, Ids]:
    """Of `ids` below `count` those that are used, in the order of first use, and for each given one its place there."""
    first = np.full(count, len(ids), np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)  # the last assignment stays
    used = np.argsort(first, kind="stable")[: int((first < len(ids)).sum())]
    place = np.full(count, -1, np.int64)
    place[used] = np.arange(len(used))
    return used, place[ids]


def first_appearance(keys: Array, rows: Array) -> tuple[Array, Ids]:
    """Rows of distinct keys of any range in the order these appear first, and for each given key the number of its row
    there."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[inverse.ravel()]


def with_strings_in_use(
    columns: Mapping[str, Mapping[str, Array]], strings: StringBuilder
) -> dict[str, dict[str, Array]]:
    """The tables with a string table of what they name, in the order of first use: frames, then the small tables."""
    places = [
        (name, column)
        for name in ("frames", *(name for name in TABLES if name != "frames" and name in columns))
        for column in TABLES[name].columns
        if column.ref == "strings"
    ]
    named = [columns[name][column.name].astype(np.int64) for name, column in places]
    frame_columns = sum(name == "frames" for name, _ in places)
    # frame by frame, so that the order does not depend on how many frames there are
    in_order = [np.zeros(1, np.int64), np.column_stack(named[:frame_columns]).ravel(), *named[frame_columns:]]
    used, _ = first_use(np.concatenate(in_order), len(strings))
    new = np.zeros(len(strings), np.int64)
    new[used] = np.arange(len(used))
    result = {name: dict(table) for name, table in columns.items()}
    for (name, column), old in zip(places, named, strict=True):
        result[name][column.name] = new[old].astype(column.dtype)
    result["strings"] = strings.columns(used.tolist())
    return result
