"""What was measured between two segments of a process: the later one less the earlier one.

Segments are whole and cumulative, so nothing in the program stops for a new file. Counts and sums are exact: those of
files that follow one another add up to the whole. **Least and most cannot be subtracted.** They are exact where the
interval set a new extreme, or measured once; else what is kept is a bound: nothing in the interval was smaller (or
larger), which follows from the run's own extreme and from the interval's mean and deviation. A bound lies within the
run's extremes, so that merged files have exact ones again. Bytes alive at a peak are of the run so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles import step_rows
from leadline.profiles.canonical import Ids
from leadline.profiles.tables import Array, Tables
from leadline.schema import TABLES, MetricKind

_KEY = ("node", "metric", "device", "stream")
_FRAME = tuple(column.name for column in TABLES["frames"].columns)
_SPENT = ("callbacks_ns", "flush_ns", "events")
_THREAD_SUMS = ("operator_ns", "data_ns", "wall_ns", "cpu_ns")
_ROUNDING = 2.3e-16
"""Relative, of every addition to a sum of squares."""


@dataclass(frozen=True)
class Between:
    """`tables` of one process. `bounds`: least and most values that are bounds, out of `extremes`."""

    tables: Tables
    bounds: int
    extremes: int


def between(now: Tables, before: Tables | None) -> Between:
    """What `now` holds more than `before`, both of one process; all of it where there is nothing before."""
    if before is None:
        metrics = dict(now["metrics"])
        return Between(_in_use(now, metrics), 0, 2 * len(metrics["node"]))
    nodes = _rows_now(now, before)
    metrics, bounds = _metrics(now["metrics"], before["metrics"], nodes)
    threads = dict(now["threads"])
    for name in _THREAD_SUMS:
        less = np.zeros_like(threads[name])
        old = before["threads"][name][: len(less)]  # rows of threads are never taken away
        less[: len(old)] = old
        threads[name] = np.maximum(threads[name] - less, 0)
    processes = {**now["processes"], "start_ns": before["processes"]["end_ns"].copy()}
    since = {
        "losses": _losses(now, before),
        "events": _new_events(now, before),
        "own_cost": _cost(now, before),
        **_steps(now, before),
    }
    changed = Tables({**now.columns, "threads": threads, "processes": processes, **since})
    return Between(_in_use(changed, metrics), bounds, 2 * len(metrics["node"]))


def _rows_now(now: Tables, before: Tables) -> Ids:
    """For every node of `before` its row in `now`; -1 for one that is not there."""
    count = before.rows("nodes")
    same = count <= now.rows("nodes") and before.rows("frames") <= now.rows("frames")
    if same and all(np.array_equal(before["nodes"][name], now["nodes"][name][:count]) for name in ("parent", "frame")):
        frames = before.rows("frames")
        if all(np.array_equal(before["frames"][name], now["frames"][name][:frames]) for name in _FRAME):
            return np.arange(count)
    return _rows_by_content(now, before)  # the writer ran out of memory and counts anew


def _rows_by_content(now: Tables, before: Tables) -> Ids:
    numbers: dict[tuple[Any, ...], int] = {}
    frames = [_frames(tables, numbers) for tables in (now, before)]
    known: dict[tuple[int, int], int] = {}
    for row, (parent, frame) in enumerate(_nodes(now)):
        known[parent, frames[0][frame]] = row
    found: list[int] = []
    for parent, frame in _nodes(before):
        above = found[parent] if parent >= 0 else -1
        found.append(known.get((above, frames[1][frame]), -1) if parent < 0 or above >= 0 else -1)
    return np.array(found, np.int64)


def _frames(tables: Tables, numbers: dict[tuple[Any, ...], int]) -> list[int]:
    columns: list[list[Any]] = []
    for column in TABLES["frames"].columns:
        values = tables["frames"][column.name].tolist()
        columns.append([tables.strings.raw(row) for row in values] if column.ref == "strings" else values)
    return [numbers.setdefault(key, len(numbers)) for key in zip(*columns, strict=True)]


def _nodes(tables: Tables) -> zip[tuple[int, int]]:
    return zip(tables["nodes"]["parent"].tolist(), tables["nodes"]["frame"].tolist(), strict=True)


def _metrics(now: Any, before: Any, nodes: Ids) -> tuple[dict[str, Array], int]:
    """Rows that counted something, and how many of their extremes are bounds."""
    old = _old_rows(now, before, nodes)
    had = old >= 0
    at = np.maximum(old, 0)

    def earlier(name: str) -> Array:
        values = now[name].dtype.type(0) if not len(before[name]) else before[name][at]
        found: Array = np.where(had, values, now[name].dtype.type(0))
        return found

    of_moment = now["metric"] == int(MetricKind.PEAK_LIVE_BYTES)
    count = now["count"].astype(np.int64) - np.where(of_moment, 0, earlier("count").astype(np.int64))
    rows = np.flatnonzero(count > 0)
    taken = {name: now[name][rows] for name in now}
    mine, moment = had[rows], of_moment[rows]
    count = count[rows]
    total = taken["sum"] - np.where(moment, 0, earlier("sum")[rows])
    squares = taken["sum_squares"] - np.where(moment, 0.0, earlier("sum_squares")[rows])
    squares = np.maximum(squares, total.astype(np.float64) ** 2 / count)
    least, most = taken["min"], taken["max"]
    new_least = ~mine | moment | (least < earlier("min")[rows])
    new_most = ~mine | moment | (most > earlier("max")[rows])
    once = (count == 1) & ~moment
    rounded = _ROUNDING * (taken["count"].astype(np.float64) + 2) * taken["sum_squares"]
    low, high = _bounds(count, total, squares + rounded)
    least = np.where(once, total, np.where(new_least, least, np.maximum(least, low)))
    most = np.where(once, total, np.where(new_most, most, np.minimum(most, high)))
    unknown = int((~new_least & ~once).sum() + (~new_most & ~once).sum())
    made = {**taken, "count": count.astype(now["count"].dtype), "sum": total, "sum_squares": squares}
    return {**made, "min": least, "max": most}, unknown


def _old_rows(now: Any, before: Any, nodes: Ids) -> Ids:
    """For every row of `now` the row of `before` with the same key, else -1."""
    if not len(before["node"]) or not len(now["node"]):
        return np.full(len(now["node"]), -1, np.int64)
    keys = [
        np.stack((node, *(table[name].astype(np.int64) for name in _KEY[1:])))
        for node, table in ((now["node"].astype(np.int64), now), (nodes[before["node"].astype(np.int64)], before))
    ]
    _, ids = np.unique(np.concatenate(keys, axis=1), axis=1, return_inverse=True)
    ids = ids.ravel()
    split = len(now["node"])
    place = np.full(int(ids.max()) + 1, -1, np.int64)
    place[ids[split:]] = np.arange(len(before["node"]))
    return place[ids[:split]]


def _bounds(count: Ids, total: NDArray[np.int64], squares: NDArray[np.float64]) -> tuple[Array, Array]:
    """No value of a sample lies further from its mean than deviation * sqrt(count - 1) (Samuelson's inequality)."""
    mean = total / count
    spread = np.sqrt(np.maximum(squares / count - mean * mean, 0.0) * (count - 1)) + 1
    edge = 2.0**62
    low = np.floor(np.clip(mean - spread, -edge, edge)).astype(np.int64)
    return low, np.ceil(np.clip(mean + spread, -edge, edge)).astype(np.int64)


def _losses(now: Tables, before: Tables) -> dict[str, Array]:
    known: dict[tuple[int, int, bytes], int] = {}
    for key, count in _loss_rows(before):
        known[key] = known.get(key, 0) + count
    left = []
    for key, count in _loss_rows(now):
        earlier = min(known.get(key, 0), count)
        known[key] = known.get(key, 0) - earlier
        left.append(count - earlier)
    counts = np.array(left, now["losses"]["count"].dtype)
    rows = np.flatnonzero(counts > 0)
    return {name: (counts if name == "count" else values)[rows] for name, values in now["losses"].items()}


def _cost(now: Tables, before: Tables) -> dict[str, Array]:
    """What measuring cost since; memory is what is held now."""
    told, earlier = dict(now["own_cost"]), before["own_cost"]
    if len(told["events"]) == len(earlier["events"]) == 1:
        for name in _SPENT:
            told[name] = told[name] - np.minimum(earlier[name], told[name])
    return told


def _steps(now: Tables, before: Tables) -> dict[str, dict[str, Array]]:
    earlier = step_rows.rows_of(before)
    return step_rows.columns_of(
        {
            thread: step_rows.between(rows, earlier.get(thread, step_rows.StepRows()))
            for thread, rows in step_rows.rows_of(now).items()
        }
    )


def _loss_rows(tables: Tables) -> list[tuple[tuple[int, int, bytes], int]]:
    columns = (tables["losses"][name].tolist() for name in ("process", "kind", "detail", "count"))
    rows = zip(*columns, strict=True)
    return [((process, kind, tables.strings.raw(detail)), count) for process, kind, detail, count in rows]


def _new_events(now: Tables, before: Tables) -> dict[str, Array]:
    """Events that `before` had not; one that ended since stays with where it was seen first to have begun."""
    events, old = now["events"], before["events"]
    names = ("start_ns", "kind", "thread", "correlation")
    known = set(zip(*(old[name].tolist() for name in names), strict=True))
    new = [one not in known for one in zip(*(events[name].tolist() for name in names), strict=True)]
    rows = np.flatnonzero(np.array(new, np.bool_))
    return {name: values[rows] for name, values in events.items()}


def _in_use(tables: Tables, metrics: dict[str, Array]) -> Tables:
    """With these metrics, and of the tree what they, events, threads and processes stand at."""
    nodes = tables["nodes"]
    parent = nodes["parent"].astype(np.int64)
    used = np.zeros(len(parent), np.bool_)
    used[0] = True
    for table in ("processes", "threads", "events", "open_places"):
        used[tables[table]["node"].astype(np.int64)] = True
    used[metrics["node"].astype(np.int64)] = True
    rows = np.flatnonzero(used)
    while len(rows):  # what is above what is used
        above = parent[rows]
        above = np.unique(above[above >= 0])
        rows = above[~used[above]]
        used[rows] = True
    new = np.cumsum(used) - 1
    kept = np.flatnonzero(used)
    above = parent[kept]
    columns: dict[str, Any] = {
        **tables.columns,
        "nodes": {
            "parent": np.where(above >= 0, new[np.maximum(above, 0)], -1).astype(nodes["parent"].dtype),
            "frame": nodes["frame"][kept],
        },
        "metrics": {**metrics, "node": new[metrics["node"].astype(np.int64)].astype(metrics["node"].dtype)},
    }
    for table in ("processes", "threads", "events", "open_places"):
        own = tables[table]
        columns[table] = {**own, "node": new[own["node"].astype(np.int64)].astype(own["node"].dtype)}
    return Tables(columns)
