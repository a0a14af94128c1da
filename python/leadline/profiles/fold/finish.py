"""A `Fold` as a profile. Here rows get the one order that they have in the file: nodes by level, parent and frame key,
frames and strings by first use, everything else by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._package import FORMAT_NAME
from leadline._version import __version__
from leadline.profiles.canonical import first_use, with_strings_in_use
from leadline.profiles.fold.join import unified
from leadline.profiles.fold.keys import key_parts
from leadline.profiles.fold.state import Column, DeviceKind, Fold, Ids, Rank, Spread, Sums
from leadline.profiles.fold.wide import as_float, as_int64, as_pair, carried
from leadline.profiles.meta import complete_meta
from leadline.profiles.profile import Profile
from leadline.profiles.step_rows import columns_of
from leadline.profiles.tables import Array, StringBuilder, Tables, columns_from_rows, empty_columns
from leadline.schema import FORMAT_VERSION, TABLES, LossKind

_MOST_NAMED = 8
"""Missing ranks that have a loss of their own; the table of ranks has all."""
_MOST_DEVICES = 2**15 - 1


def finished(fold: Fold, missing: Sequence[Rank] = (), left_out: Sequence[str] = ()) -> Profile:
    """The profile. `missing`: ranks of which there is nothing; `left_out`: a sentence for every file that is not in
    it. Raises ValueError for more than 32,767 kinds of devices."""
    if len(fold.devices) > _MOST_DEVICES:
        raise ValueError(f"These ranks cannot be folded: they have more than {_MOST_DEVICES} kinds of devices.")
    rows = _Rows(fold, missing)
    strings = StringBuilder()
    columns: dict[str, Mapping[str, Array]] = {
        **_tree(fold, rows, strings),
        **_metrics(fold, rows),
        **_small_tables(fold, rows, strings, left_out),
        **_ranks(rows, strings),
        **_statistics(fold, rows),
        **fold.code.columns(strings),
        **_alone(fold, rows),
        "node_ranks": {"ranks": _placed(fold.holders, rows).astype("<u4")},
    }
    whole = with_strings_in_use(columns, strings)
    tables = Tables({name: whole[name] if name in whole else empty_columns(name) for name in TABLES})
    return Profile(tables, complete_meta(_meta(fold, rows)))


class _Rows:
    """Where everything stands in the file."""

    def __init__(self, fold: Fold, missing: Sequence[Rank]) -> None:
        by_key = sorted(range(len(fold.keys)), key=fold.keys.__getitem__)
        self.frame_keys = [fold.keys[row] for row in by_key]
        self.frame_files = [fold.files[row] for row in by_key]
        place = np.empty(len(by_key), np.int64)
        place[by_key] = np.arange(len(by_key))
        self.parent, self.frame, maps = unified([fold.parent], [place[fold.frame]], len(by_key))
        self.node = maps[0]
        """New row of every node of the fold."""
        self.ranks = sorted([*fold.ranks, *missing], key=lambda rank: rank.order)
        places = {id(rank): row for row, rank in enumerate(self.ranks)}
        self.rank = np.array([places[id(rank)] for rank in fold.ranks], np.int64)
        with_ranks = {rank.group for rank in fold.ranks}
        below_root = np.flatnonzero(self.parent == 0).tolist()
        self.node_of_group = {self.frame_keys[int(self.frame[row])]: row for row in below_root}
        ordered = sorted(fold.groups, key=lambda key: (key not in with_ranks, self.node_of_group[key]))
        self.process = {key: row for row, key in enumerate(ordered)}
        devices = sorted(fold.devices, key=lambda one: (self.process[one.group], *_device_order(one)))
        of_device = {one: row for row, one in enumerate(devices)}
        self.devices = devices
        self.device = np.array([*(of_device[one] for one in fold.devices), -1], np.int64)

    def node_of_thread(self, group: bytes, key: bytes) -> int:
        """The thread's node, below that of its group."""
        return self._threads[self.node_of_group[group], key]

    @property
    def _threads(self) -> dict[tuple[int, bytes], int]:
        if not hasattr(self, "_found"):
            groups = np.array(sorted(self.node_of_group.values()), np.int64)
            rows = np.flatnonzero(np.isin(self.parent, groups)).tolist()
            self._found = {(int(self.parent[row]), self.frame_keys[int(self.frame[row])]): row for row in rows}
        return self._found


def _device_order(one: DeviceKind) -> tuple[Any, ...]:
    return one.index, one.name, one.memory_bytes, one.detail


def _tree(fold: Fold, rows: _Rows, strings: StringBuilder) -> dict[str, dict[str, Array]]:
    used, frame = first_use(rows.frame, len(rows.frame_keys))
    frames = []
    for row in used.tolist():
        kind, name, _, line, first_line, module, address, detail = key_parts(rows.frame_keys[row])
        frames.append(
            {
                "kind": kind,
                "name": strings.add(name),
                "file": strings.add(rows.frame_files[row]),
                "line": line,
                "first_line": first_line,
                "module": strings.add(module),
                "address": address,
                "detail": strings.add(detail),
            }
        )
    return {
        "frames": columns_from_rows("frames", frames),
        "nodes": {"parent": rows.parent.astype("<i4"), "frame": frame.astype("<u4")},
    }


def _placed(values: Ids, rows: _Rows) -> Ids:
    made = np.zeros(len(values), np.int64)
    made[rows.node] = values
    return made


def _alone(fold: Fold, rows: _Rows) -> dict[str, dict[str, Array]]:
    """What single ranks have measured, in the order of ranks."""
    pieces = []
    for row, sums in sorted(fold.alone.items(), key=lambda item: int(rows.rank[item[0]])):
        values, _ = _columns_of(sums, rows)
        pieces.append({"rank": np.full(len(values["node"]), rows.rank[row]), **values})
    if not pieces:
        return {"rank_metrics": empty_columns("rank_metrics")}
    return {
        "rank_metrics": typed(
            "rank_metrics", {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        )
    }


def _metrics(fold: Fold, rows: _Rows) -> dict[str, dict[str, Array]]:
    if not fold.sums:
        return {"metrics": empty_columns("metrics"), "metric_squares": empty_columns("metric_squares")}
    values, squares = _columns_of(fold.sums, rows)
    high, low = as_pair(squares)
    return {"metrics": typed("metrics", values), "metric_squares": typed("metric_squares", {"high": high, "low": low})}


def _columns_of(sums: Mapping[Column, Sums], rows: _Rows) -> tuple[dict[str, Array], NDArray[np.int64]]:
    """Columns as in the table metrics, and their exact squares, by node and column; `sums` is not empty."""
    columns: list[Column] = sorted(
        ((metric, int(rows.device[device]), stream) for metric, device, stream in sums),
    )
    of_new = {(metric, int(rows.device[device]), stream): one for (metric, device, stream), one in sums.items()}
    pieces = [of_new[column] for column in columns]
    sizes = [len(one.node) for one in pieces]
    node = np.concatenate([rows.node[one.node] for one in pieces])
    number = np.repeat(np.arange(len(columns)), sizes)
    order = np.lexsort((number, node))
    keys = np.array(columns, np.int64)[number[order]]
    squares = np.concatenate([one.squares for one in pieces], axis=1)[:, order]
    values: dict[str, Array] = {
        "node": node[order],
        "metric": keys[:, 0],
        "device": keys[:, 1],
        "stream": keys[:, 2],
        "count": np.concatenate([one.count for one in pieces])[order],
        "sum": as_int64(np.concatenate([one.total for one in pieces], axis=1)[:, order]),
        "min": np.concatenate([one.least for one in pieces])[order],
        "max": np.concatenate([one.most for one in pieces])[order],
        "sum_squares": as_float(squares),
    }
    return values, squares


def typed(table: str, values: Mapping[str, Array]) -> dict[str, Array]:
    """Columns in the order and types of the schema."""
    return {column.name: values[column.name].astype(column.dtype) for column in TABLES[table].columns}


def _small_tables(
    fold: Fold, rows: _Rows, strings: StringBuilder, left_out: Sequence[str]
) -> dict[str, dict[str, Array]]:
    processes: list[dict[str, int]] = []
    for key in rows.process:
        group = fold.groups[key]
        only = [rank.rank for rank in fold.ranks if rank.group == key]
        processes.append(
            {
                "pid": 0,  # none of the system's: several processes
                "parent_pid": 0,
                "rank": only[0] if len(only) == 1 else -1,
                "local_rank": -1,
                "node": rows.node_of_group[key],
                "name": strings.add(group.name),
                "start_ns": group.start_ns,
                "end_ns": group.end_ns,
                "complete": int(group.complete),
            }
        )
    return {
        "processes": columns_from_rows("processes", processes),
        **_threads(fold, rows, strings),
        "devices": columns_from_rows(
            "devices",
            (
                {
                    "process": rows.process[one.group],
                    "index": one.index,
                    "name": strings.add(one.name),
                    "uuid": 0,
                    "memory_bytes": one.memory_bytes,
                    "detail": strings.add(one.detail),
                }
                for one in rows.devices
            ),
        ),
        "losses": columns_from_rows("losses", _losses(fold, rows, strings, left_out)),
    }


def _threads(fold: Fold, rows: _Rows, strings: StringBuilder) -> dict[str, dict[str, Array]]:
    """Threads have no number any more."""
    placed = sorted((rows.process[group], rows.node_of_thread(group, key), group, key) for group, key in fold.threads)
    made, mains = [], []
    for row, (process, node, group, key) in enumerate(placed):
        one = fold.threads[group, key]
        made.append(
            {
                "process": process,
                "tid": 0,
                "name": strings.add(key_parts(key)[1]),
                "node": node,
                "operator_ns": one.operator_ns,
                "data_ns": one.data_ns,
                "wall_ns": one.wall_ns,
                "cpu_ns": one.cpu_ns,
            }
        )
        if one.mains:
            mains.append({"thread": row, "count": one.mains})
    steps = {row: fold.threads[group, key].steps for row, (_, _, group, key) in enumerate(placed)}
    return {
        "threads": columns_from_rows("threads", made),
        "main_threads": columns_from_rows("main_threads", mains),
        **columns_of({row: one for row, one in steps.items() if one.spans}),
    }


def _losses(fold: Fold, rows: _Rows, strings: StringBuilder, left_out: Sequence[str]) -> list[dict[str, int]]:
    kept = [(rows.process[group], kind, detail, count) for (group, kind, detail), count in fold.losses.items()]
    absent = [rank for rank in rows.ranks if not rank.group]
    kept += [(0, int(LossKind.RANK_MISSING), rank.note, 1) for rank in absent[:_MOST_NAMED]]
    if len(absent) > _MOST_NAMED:
        more = len(absent) - _MOST_NAMED
        kept.append((0, int(LossKind.RANK_MISSING), f"{more} more ranks; the table of ranks names them.", more))
    kept += [(0, int(LossKind.FILE_LEFT_OUT), sentence, 1) for sentence in sorted(left_out)]
    return [
        {"process": process, "kind": kind, "count": count, "detail": strings.add(detail)}
        for process, kind, detail, count in sorted(kept)
    ]


def _ranks(rows: _Rows, strings: StringBuilder) -> dict[str, dict[str, Array]]:
    ranks = [
        {
            "rank": one.rank,
            "local_rank": one.local_rank,
            "process": rows.process[one.group] if one.group else -1,
            "status": one.status,
            "host": strings.add(one.host),
            "role": strings.add(one.role),
            "identity": strings.add(one.identity),
            "files": strings.add("\n".join(one.files)),
            "note": strings.add(one.note),
            "start_ns": one.start_ns,
            "end_ns": one.end_ns,
        }
        for one in rows.ranks
    ]
    values = [
        {"rank": row, "name": strings.add(name), "value": value, "count": count}
        for row, one in enumerate(rows.ranks)
        for name, (value, count) in sorted(one.values.items())
    ]
    return {"ranks": columns_from_rows("ranks", ranks), "rank_values": columns_from_rows("rank_values", values)}


def _statistics(fold: Fold, rows: _Rows) -> dict[str, dict[str, Array]]:
    spreads = [_spread_columns(metric, one, rows) for metric, one in sorted(fold.spreads.items())]
    histograms: list[dict[str, Array]] = []
    for metric, one in sorted(fold.histograms.items()):
        kind = np.full(len(one.node), metric, np.int16)
        histograms.append({"node": rows.node[one.node], "metric": kind, "bin": one.bin, "ranks": one.ranks})
    return {
        "rank_stats": _ordered("rank_stats", spreads, ("metric", "node")),
        "rank_histogram": _ordered("rank_histogram", histograms, ("bin", "metric", "node")),
    }


def _spread_columns(metric: int, one: Spread, rows: _Rows) -> dict[str, Array]:
    total = carried(one.total)
    high, low = as_pair(one.squares)
    return {
        "node": rows.node[one.node],
        "metric": np.full(len(one.node), metric),
        "ranks": one.ranks,
        "sum_high": total[1],
        "sum_low": total[0],
        "squares_high": high,
        "squares_low": low,
        "min": one.least,
        "max": one.most,
        "min_rank": rows.rank[one.least_rank],
        "max_rank": rows.rank[one.most_rank],
    }


def _ordered(table: str, pieces: Sequence[Mapping[str, Array]], by: tuple[str, ...]) -> dict[str, Array]:
    if not pieces:
        return empty_columns(table)
    whole = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    order: NDArray[np.int64] = np.lexsort([whole[name] for name in by])
    return typed(table, {name: whole.pop(name)[order] for name in list(whole)})


def _meta(fold: Fold, rows: _Rows) -> dict[str, Any]:
    meta = fold.meta
    wall_ns, cost = meta["wall_of_all_ns"], dict(meta["cost"])
    cost["percent"] = 100.0 * cost["callbacks_ns"] / wall_ns if wall_ns else None
    return {
        "format": {"name": FORMAT_NAME, "version": FORMAT_VERSION},
        "leadline": __version__,
        "program": meta.get("program") or {},
        "asked": meta.get("asked") or {},
        "available": meta.get("available") or {},
        "host": meta.get("host") or {},
        "started_at_ns": meta["started_at_ns"],
        "wall_ns": meta["ended_at_ns"] - meta["started_at_ns"],
        "cost": cost,
        "processes": [],
        "complete": bool(meta["complete"]),  # of what was read; ranks that are missing are losses
        "fold": {
            "by": fold.by,
            "ranks": len(rows.ranks),
            "job": meta.get("job") or "",
            "world_size": int(meta.get("world_size") or 0),
            "order": meta["order"],
            "wall_of_all_ns": wall_ns,
            "complete": bool(meta["complete"]),
        },
    }


def node_rows(fold: Fold) -> Ids:
    """New row of every node of the fold, as `finished` places them."""
    return _Rows(fold, ()).node
