"""Frames put above others all over a tree: what was inlined there, and so has no frame of its own when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from leadline.profiles.tables import Tables
from leadline.schema import TABLES


def with_frames_above(tables: Tables, above: Mapping[int, Sequence[int]]) -> Tables:
    """Every node of a frame in `above` gets nodes of those frames between itself and its parent, outermost first; what
    was measured stays at the node itself."""
    nodes = tables["nodes"]
    count_of = np.zeros(tables.rows("frames"), np.int64)
    for row, more in above.items():
        count_of[row] = len(more)
    counts = count_of[nodes["frame"]]
    row_of = np.cumsum(counts + 1) - 1  # the last of its rows is the node itself
    total = int(row_of[-1]) + 1 if len(row_of) else 0
    parent = np.zeros(total, nodes["parent"].dtype)
    frame = np.zeros(total, nodes["frame"].dtype)
    old_parent = nodes["parent"].astype(np.int64)
    new_parent = np.where(old_parent >= 0, row_of[np.maximum(old_parent, 0)], -1)
    parent[row_of] = np.where(counts > 0, row_of - 1, new_parent)
    frame[row_of] = nodes["frame"]
    for node in np.flatnonzero(counts).tolist():
        rows = range(int(row_of[node] - counts[node]), int(row_of[node]))
        for at, (place, outer) in enumerate(zip(rows, above[int(nodes["frame"][node])], strict=True)):
            parent[place] = new_parent[node] if at == 0 else place - 1
            frame[place] = outer
    columns = {name: dict(table) for name, table in tables.columns.items()}
    columns["nodes"] = {"parent": parent, "frame": frame}
    for name, table in TABLES.items():
        for column in table.columns:
            if name == "nodes" or column.ref != "nodes" or not len(columns.get(name, {}).get(column.name, ())):
                continue
            values = columns[name][column.name]
            known = row_of[np.clip(values.astype(np.int64), 0, None)]
            columns[name][column.name] = np.where(values.astype(np.int64) < 0, -1, known).astype(values.dtype)
    return Tables(columns)
