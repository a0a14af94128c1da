"""What single ranks of a folded job have measured, beside what all have: kept for the few that were found late, whose
own tree a person wants to see. It is looked up in a second pass over the files of these ranks, so the first one need
not know who they will be. Nothing of it counts in the job's own sums, and joining forgets it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.profiles.fold.join import one_table_of_frames, unified
from leadline.profiles.fold.restore import stored_ranks
from leadline.profiles.fold.state import Column, Fold, Ids, Rank, Sums
from leadline.profiles.mains import main_threads
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Array, Columns, Tables, empty_columns
from leadline.schema import TABLES, MetricKind

_CODE = ("code_objects", "code_bytes", "code_lines")


def with_ranks_alone(whole: Fold, parts: Sequence[Fold], identities: Collection[str]) -> Fold:
    """`whole` with what the ranks of these identities have measured: each part is a fold of one of them, or one that
    has some of them `alone` itself. Every path of a part is one of the whole."""
    _, _, frames = one_table_of_frames([(one.keys, one.files) for one in (whole, *parts)])
    parent, _, nodes = unified(
        [one.parent for one in (whole, *parts)],
        [new[one.frame] for one, new in zip((whole, *parts), frames, strict=True)],
        max(int(new.max(initial=0)) for new in frames) + 1,
    )
    node_of = np.full(len(parent), -1, np.int64)
    node_of[nodes[0]] = np.arange(len(whole.parent))
    place = {one.identity: row for row, one in enumerate(whole.ranks) if one.identity in identities}
    device_of = {one: row for row, one in enumerate(whole.devices)}
    alone: dict[int, Mapping[Column, Sums]] = {}
    for part, node in zip(parts, nodes[1:], strict=True):
        devices = [*(device_of[one] for one in part.devices), -1]
        for row, sums in [(0, part.sums)] if len(part.ranks) == 1 else part.alone.items():
            at = place.get(part.ranks[row].identity)
            if at is not None:
                alone[at] = _moved(sums, node_of[node], devices)
    return replace(whole, alone=alone)


def _moved(sums: Mapping[Column, Sums], node: Ids, devices: Sequence[int]) -> dict[Column, Sums]:
    return {
        (metric, devices[device], stream): replace(one, node=node[one.node])
        for (metric, device, stream), one in sums.items()
    }


def ranks_alone(profile: Profile) -> list[Rank]:
    """Ranks of a folded profile whose own measurements it holds, by number."""
    ranks = stored_ranks(profile.tables)
    return [ranks[row] for row in np.unique(profile.tables["rank_metrics"]["rank"]).tolist()]


def rank_profile(profile: Profile, number: int) -> Profile | None:
    """What rank `number` has measured, as a profile; None where the file does not hold it by itself."""
    tables = profile.tables
    held = tables["rank_metrics"]
    ranks = stored_ranks(tables)
    row = next((row for row in np.unique(held["rank"]).tolist() if ranks[row].rank == number), -1)
    if row < 0:
        return None
    here = held["rank"] == row
    metrics = {column.name: held[column.name][here] for column in TABLES["metrics"].columns}
    used = _with_ancestors(tables["nodes"]["parent"], metrics["node"])
    main = int(tables["ranks"]["process"][row])
    used[int(tables["processes"]["node"][main])] = True
    columns = {
        **{name: empty_columns(name) for name in TABLES},
        **{name: tables[name] for name in ("strings", "frames", "nodes", "devices", *_CODE)},
        "threads": _threads(tables, used, ranks[row], metrics),
        "processes": _with_facts(tables["processes"], main, ranks[row]),
        "metrics": metrics,
        "main_threads": tables["main_threads"],
    }
    rest = {name: value for name, value in profile.meta.items() if name != "fold"}
    began_ns, ended_ns = ranks[row].start_ns, ranks[row].end_ns
    meta = {**rest, "started_at_ns": began_ns, "wall_ns": max(ended_ns - began_ns, 0)}
    return Profile(_without_unused(Tables(columns), used), meta)


def _with_ancestors(parent: Array, nodes: Array) -> NDArray[np.bool_]:
    used = np.zeros(len(parent), np.bool_)
    used[0] = True
    rows = np.unique(nodes.astype(np.int64))
    while len(rows):
        used[rows] = True
        above = np.unique(parent[rows].astype(np.int64))
        above = above[above >= 0]
        rows = above[~used[above]]
    return used


def _with_facts(processes: Columns, main: int, rank: Rank) -> dict[str, Array]:
    """The rank's own number and times in the row that it was folded into."""
    changed = {name: values.copy() for name, values in processes.items()}
    for name, value in (
        ("rank", rank.rank),
        ("local_rank", rank.local_rank),
        ("start_ns", rank.start_ns),
        ("end_ns", rank.end_ns),
    ):
        changed[name][main] = value
    return changed


def _threads(tables: Tables, used: NDArray[np.bool_], rank: Rank, metrics: Columns) -> dict[str, Array]:
    """Times of its main thread are known; those of the others were added to those of other ranks."""
    threads = {name: values.copy() for name, values in tables["threads"].items()}
    for name in ("operator_ns", "data_ns", "wall_ns", "cpu_ns"):
        threads[name][:] = 0
    counts = main_threads(tables)
    mains = [row for row in counts if used[int(threads["node"][row])]]
    if mains:
        row = max(mains, key=lambda one: (counts[one], -one))
        for name, column in (("wall_ns", "wall"), ("cpu_ns", "cpu"), ("data_ns", "time data loading")):
            threads[name][row] = rank.values.get(column, (0, 0))[0]
        inside = int(metrics["sum"][metrics["metric"] == int(MetricKind.TIME)].sum())
        threads["operator_ns"][row] = min(max(inside - int(threads["data_ns"][row]), 0), int(threads["wall_ns"][row]))
    return threads


def _without_unused(tables: Tables, used: NDArray[np.bool_]) -> Tables:
    """Without nodes that are not `used`, and processes, threads and devices that stand at none."""
    rows = np.flatnonzero(used)
    new = np.cumsum(used) - 1
    nodes, processes = tables["nodes"], tables["processes"]
    parent = nodes["parent"][rows].astype(np.int64)
    kept = {name: np.flatnonzero(used[tables[name]["node"].astype(np.int64)]) for name in ("processes", "threads")}
    kept["devices"] = np.flatnonzero(np.isin(tables["devices"]["process"], kept["processes"]))
    process = np.full(len(processes["node"]), -1, np.int64)
    process[kept["processes"]] = np.arange(len(kept["processes"]))
    device = np.full(tables.rows("devices") + 1, -1, np.int64)
    device[kept["devices"]] = np.arange(len(kept["devices"]))
    columns: dict[str, Columns] = dict(tables.columns)
    columns["nodes"] = {
        "parent": np.where(parent >= 0, new[np.maximum(parent, 0)], -1).astype("<i4"),
        "frame": nodes["frame"][rows],
    }
    for name, places in kept.items():
        columns[name] = {column: values[places] for column, values in tables[name].items()}
    thread = np.full(tables.rows("threads") + 1, -1, np.int64)
    thread[kept["threads"]] = np.arange(len(kept["threads"]))
    mains = thread[tables["main_threads"]["thread"].astype(np.int64)] >= 0
    columns["main_threads"] = {column: values[mains] for column, values in tables["main_threads"].items()}
    for name, column, place in (
        ("main_threads", "thread", thread),
        ("metrics", "node", new),
        ("processes", "node", new),
        ("threads", "node", new),
        ("threads", "process", process),
        ("devices", "process", process),
        ("metrics", "device", device),
    ):
        values = columns[name][column]
        columns[name] = {**columns[name], column: place[values.astype(np.int64)].astype(values.dtype)}
    return Tables(columns)
