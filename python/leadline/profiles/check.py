"""Referential integrity: after `check_tables` every id of a profile points at a row that exists and the tree is a tree.
Kinds are not checked: one that this release does not know is shown by its number.

Runs once per file, on whole columns. What it lets pass cannot make later code index out of bounds or loop without end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leadline.profiles.tables import Array, Columns, Tables
from leadline.schema import TABLES, EventKind, FrameKind

_MOST_MEASUREMENTS = 2**48  # of one row: a million a second for nine years; leaves room to add thousands of rows up
_ON_THREADS = (
    EventKind.OPERATOR,
    EventKind.REGION,
    EventKind.PHASE,
    EventKind.STEP,
    EventKind.API,
    EventKind.MODULE,
    EventKind.PYTHON,
)
_LONGEST_NS = 2**61
"""73 years, of any clock and of any event: twice as much still fits a column."""
_DEVICE_COLUMNS = (("metrics", "device"), ("events", "device"), ("rank_metrics", "device"))


class TableError(ValueError):
    """A table contradicts itself or another one; the message is the part of a sentence after "cannot be read: "."""


def check_tables(columns: Mapping[str, Columns]) -> Tables:
    """The tables, checked; raises TableError with the first contradiction found."""
    for name, table in TABLES.items():
        if name == "strings":
            continue
        lengths = {len(columns[name][column.name]) for column in table.columns}
        if len(lengths) > 1:
            raise TableError(f"the columns of its table {name} differ in length")
    tables = Tables(columns)
    _check_strings(columns["strings"])
    for name, table in TABLES.items():
        for column in table.columns:
            values = columns[name][column.name]
            if column.ref and (name, column.name) != ("nodes", "parent"):
                _check_ids(name, column.name, values, tables.rows(column.ref), f"rows of {column.ref}")
    for name, column_name in _DEVICE_COLUMNS:
        _check_ids(name, column_name, columns[name][column_name], tables.rows("devices"), "rows of devices")
    if np.any(columns["processes"]["complete"] > 1):
        raise TableError("processes.complete holds more than 0 and 1")
    _check_nodes(columns["nodes"], columns["frames"])
    _check_metrics("metrics", columns["metrics"])
    _check_metrics("rank_metrics", columns["rank_metrics"])
    if len(columns["node_ranks"]["ranks"]) not in (0, len(columns["nodes"]["parent"])):
        raise TableError("its table node_ranks does not have a row for every node")
    _check_code(columns["code_objects"], len(columns["code_bytes"]["bytes"]))
    _check_events(columns["events"])
    if np.any(np.diff(columns["kernel_events"]["time_ns"]) < 0):
        raise TableError("its kernel events are not ordered by time")
    return tables


def _check_strings(strings: Columns) -> None:
    data, offsets = strings["bytes"], strings["offsets"]
    if len(offsets) < 2 or offsets[0] != 0 or offsets[1] != 0:
        raise TableError("its string table does not begin with the empty string")
    if np.any(offsets[1:] < offsets[:-1]) or int(offsets[-1]) > len(data):
        raise TableError("its string table points outside its text")


def _check_ids(table: str, column: str, values: Array, count: int, what: str) -> None:
    if not len(values):
        return
    lowest, highest = int(values.min()), int(values.max())
    if lowest < (-1 if values.dtype.kind == "i" else 0) or highest >= count:
        wrong = highest if highest >= count else lowest
        raise TableError(f"{table}.{column} holds {wrong} where there are {count} {what}")


def _check_nodes(nodes: Columns, frames: Columns) -> None:
    parent = nodes["parent"]
    if not len(parent) or parent[0] != -1 or frames["kind"][nodes["frame"][0]] != FrameKind.ROOT:
        raise TableError("its tree does not begin with a root")
    rest = parent[1:]
    if np.any(rest < 0) or np.any(rest >= np.arange(1, len(parent), dtype=np.int64)):
        raise TableError("its tree has a node that does not come after its parent")


def _check_code(objects: Columns, held: int) -> None:
    begin, size = objects["begin"], objects["size"]
    if np.any(begin > np.uint64(held)) or np.any(size > np.uint64(held) - np.minimum(begin, np.uint64(held))):
        raise TableError("its machine code is outside of the file")


def _check_metrics(table: str, metrics: Columns) -> None:
    if np.any(metrics["count"] > np.uint64(_MOST_MEASUREMENTS)):
        raise TableError(f"{table}.count holds more than can have been counted")
    if np.any((metrics["min"] > metrics["max"]) & (metrics["count"] > 0)):
        raise TableError(f"a row of its table {table} has a minimum above its maximum")


def _check_events(events: Columns) -> None:
    starts = events["start_ns"]
    if np.any(starts[1:] < starts[:-1]):
        raise TableError("its events are not ordered by start")
    if any(np.any((times < -_LONGEST_NS) | (times > _LONGEST_NS)) for times in (starts, events["duration_ns"])):
        raise TableError("its events have times that no clock can have")  # and whose sums do not fit
    on_thread = np.isin(events["kind"], [int(kind) for kind in _ON_THREADS])
    if np.any(on_thread & (events["thread"] < 0)):
        raise TableError("it has an operator, region, phase, step, API call, module or Python frame without a thread")
