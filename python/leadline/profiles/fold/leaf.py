"""The files of one rank as a `Fold`.

A rank is one or more processes that a launcher gave the same number: those of one file, of files that follow one
another, of a start after a failure. What they measured is added up, so statistics over ranks see it as one. Processes
that these started (loader workers) stand beside it as helpers. Threads whose names differ in digits only are one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles import step_rows
from leadline.profiles.canonical import owners
from leadline.profiles.codetables import code_of
from leadline.profiles.fold.facts import rank_values
from leadline.profiles.fold.join import both_groups, both_threads, joined_code, unified
from leadline.profiles.fold.keys import frame_keys, process_key
from leadline.profiles.fold.state import (
    COST,
    PARTIAL,
    WHOLE,
    Column,
    DeviceKind,
    Fold,
    Group,
    Histogram,
    Ids,
    Rank,
    Spread,
    Sums,
    ThreadSums,
    rows_of,
)
from leadline.profiles.fold.untimed import untimed_steps
from leadline.profiles.fold.wide import MOST, bins, limbs_of_floats, squares_of, sums_of
from leadline.profiles.lineage import record_of_rows
from leadline.profiles.mains import main_threads
from leadline.profiles.profile import Profile
from leadline.profiles.rollup import Shape, subtree_sums
from leadline.profiles.tables import Tables
from leadline.profiles.tree import json_object
from leadline.schema import MetricKind

SPREADS = (MetricKind.TIME, MetricKind.GPU_TIME, MetricKind.WAIT_TIME, MetricKind.SYNC_TIME, MetricKind.ALLOC_BYTES)
"""Metrics of which statistics over ranks are kept."""
_SMALLEST = 100_000
"""A path below this part of its rank's sum has no statistics, so that the order of joins cannot show."""
_NUMBERS = re.compile(r"\d{3,}")
"""Pids and times in sentences of losses, which would keep those of all ranks apart."""
_DEVICE_FACTS = ("type", "compute_capability", "multiprocessors", "vendor", "architecture", "wavefront")
"""What of a device's detail is the same on every rank."""


@dataclass(frozen=True)
class Member:
    """A process of a rank: its row in its file, and the label of the group that it is folded into."""

    row: int
    label: str
    main: bool


@dataclass(frozen=True)
class RankFacts:
    """What is known of a rank besides its measurements; see `state.Rank`."""

    rank: int
    identity: str
    local_rank: int
    host: str
    role: str
    note: str = ""


class Source:
    """A file that one or more ranks are read from; what they share is computed once."""

    def __init__(self, profile: Profile, file: str) -> None:
        self.profile = profile
        self.file = file

    @property
    def tables(self) -> Tables:
        return self.profile.tables

    @cached_property
    def keys(self) -> tuple[list[bytes], list[bytes]]:
        """See `keys.frame_keys`."""
        return frame_keys(self.tables)

    @cached_property
    def records(self) -> list[Mapping[str, Any]]:
        """What every process said of itself."""
        return record_of_rows(self.profile)

    @cached_property
    def owner(self) -> Ids:
        """Row of the process of every node, -1 outside all."""
        return owners(self.tables, np.arange(self.tables.rows("processes")))


def fold_rank(pieces: Sequence[tuple[Source, Sequence[Member]]], facts: RankFacts | None, by: str) -> Fold:
    """The processes of one rank. `facts` None: processes beside the ranks (a launcher), of which there are no
    statistics. No process twice."""
    known: dict[bytes, int] = {}
    files: list[bytes] = []
    parts = [_part(source, members, known, files) for source, members in pieces]
    parent, frame, maps = unified([one.parent for one in parts], [one.frame for one in parts], len(known))
    used, frame = np.unique(frame, return_inverse=True)
    keys = list(known)
    keys, files = [keys[row] for row in used.tolist()], [files[row] for row in used.tolist()]
    shape = Shape(parent)
    devices = _devices(parts)
    sums = _sums(parts, maps, devices)
    threads, mains = _threads(parts)
    ranks = []
    if facts is not None:
        of_mains = _of_mains(parts, shape, keys, frame, sums)
        values = rank_values(keys, shape, frame, of_mains, mains)
        ranks.append(_rank(facts, parts, values | untimed_steps(values, pieces)))
    spreads, histograms = ({}, {}) if facts is None else _spreads(shape, sums)
    return Fold(
        by=by,
        keys=keys,
        files=files,
        parent=parent,
        frame=frame,
        holders=np.full(len(parent), facts is not None, np.int64),
        sums=sums,
        spreads=spreads,
        histograms=histograms,
        ranks=ranks,
        groups=_groups(parts),
        threads=threads,
        devices=list(dict.fromkeys(devices.values())),
        losses=_losses(parts),
        meta=_meta(pieces, facts),
        code=joined_code(code_of(source.tables) for source, _ in pieces),
    )


@dataclass(frozen=True)
class _Part:
    """The nodes of some processes of a file. `place`: for every node of the file its row here, -1 elsewhere."""

    source: Source
    members: Sequence[Member]
    parent: Ids
    frame: Ids
    place: Ids

    @property
    def group_of(self) -> dict[int, bytes]:
        return {one.row: process_key(one.label) for one in self.members}


def _part(source: Source, members: Sequence[Member], known: dict[bytes, int], files: list[bytes]) -> _Part:
    keys, shown = source.keys
    new = np.empty(len(keys) + len(members), np.int64)
    labels = [process_key(one.label) for one in members]
    for row, (key, file) in enumerate(zip([*keys, *labels], [*shown, *(b"" for _ in labels)], strict=True)):
        new[row] = at = known.setdefault(key, len(known))
        if at == len(files):
            files.append(file)
        elif file < files[at]:
            files[at] = file
    nodes, processes = source.tables["nodes"], source.tables["processes"]
    frame = new[nodes["frame"].astype(np.int64)]
    mine = np.isin(source.owner, [one.row for one in members])
    mine[0] = True
    parent = nodes["parent"].astype(np.int64)
    for number, one in enumerate(members):
        node = int(processes["node"][one.row])
        frame[node] = new[len(keys) + number]
        parent[node] = 0
    place = np.where(mine, np.cumsum(mine) - 1, -1)
    rows = np.flatnonzero(mine)
    above = place[np.maximum(parent[rows], 0)]
    above[0] = -1
    return _Part(source, members, above, frame[rows], place)


def _devices(parts: Sequence[_Part]) -> dict[tuple[int, int], DeviceKind]:
    """By number of part and row there: of every process the n-th device that it measured."""
    found: dict[tuple[int, int], DeviceKind] = {}
    for number, part in enumerate(parts):
        tables = part.source.tables
        measured = set(np.unique(tables["metrics"]["device"][tables["metrics"]["count"] > 0]).tolist())
        columns = {name: values.tolist() for name, values in tables["devices"].items()}
        groups = part.group_of
        seen: dict[int, int] = {}
        for row in sorted(range(tables.rows("devices")), key=lambda row: (columns["index"][row], row)):
            process = columns["process"][row]
            if row not in measured or process not in groups:
                continue
            seen[process] = at = seen.get(process, -1) + 1
            told = json_object(tables.strings[columns["detail"][row]])
            detail = {name: told[name] for name in _DEVICE_FACTS if name in told}
            found[number, row] = DeviceKind(
                groups[process],
                at,
                tables.strings[columns["name"][row]],
                columns["memory_bytes"][row],
                json.dumps(detail, sort_keys=True) if detail else "",
            )
    return found


def _of_mains(
    parts: Sequence[_Part], shape: Shape, keys: Sequence[bytes], frame: Ids, sums: Mapping[Column, Sums]
) -> dict[Column, Sums]:
    """What the main processes measured, without their helpers."""
    groups = {process_key(one.label) for part in parts for one in part.members if one.main}
    top = np.where(shape.parent == 0, np.arange(shape.size), np.maximum(shape.parent, 0))
    while not np.array_equal(further := top[top], top):
        top = further
    mine = np.array([key in groups for key in keys], np.bool_)[frame[top]]
    return {column: rows_of(one, mine[one.node]) for column, one in sums.items()}


def _sums(
    parts: Sequence[_Part], maps: Sequence[Ids], devices: Mapping[tuple[int, int], DeviceKind]
) -> dict[Column, Sums]:
    listed = {one: row for row, one in enumerate(dict.fromkeys(devices.values()))}
    pieces: list[NDArray[np.int64]] = []
    squares: list[NDArray[np.float64]] = []
    largest = max(range(len(parts)), key=lambda number: _peak(parts[number]), default=0)
    for number, (part, new) in enumerate(zip(parts, maps, strict=True)):
        metrics = part.source.tables["metrics"]
        at = part.place[metrics["node"].astype(np.int64)]
        counted = (at >= 0) & (metrics["count"] > 0)
        if number != largest:  # files that follow one another have peaks of several moments
            counted &= metrics["metric"] != int(MetricKind.PEAK_LIVE_BYTES)
        rows = np.flatnonzero(counted)
        device = np.full(part.source.tables.rows("devices") + 1, -1, np.int64)
        for (owner, row), one in devices.items():
            if owner == number:
                device[row] = listed[one]
        whole = [metrics[name][rows].astype(np.int64) for name in ("metric", "stream", "count", "sum", "min", "max")]
        pieces.append(np.stack((new[at[rows]], device[metrics["device"][rows].astype(np.int64)], *whole)))
        squares.append(metrics["sum_squares"][rows].astype(np.float64))
    return _by_column(np.concatenate(pieces, axis=1), limbs_of_floats(np.concatenate(squares)))


def _peak(part: _Part) -> int:
    """Bytes alive at the peaks of its processes."""
    metrics = part.source.tables["metrics"]
    mine = part.place[metrics["node"].astype(np.int64)] >= 0
    return int(metrics["sum"][mine & (metrics["metric"] == int(MetricKind.PEAK_LIVE_BYTES))].sum())


def _by_column(rows: NDArray[np.int64], squares: NDArray[np.int64]) -> dict[Column, Sums]:
    """`rows`: node, device, metric, stream, count, sum, min, max; of one node and column there may be several."""
    order = np.lexsort((rows[0], rows[3], rows[1], rows[2]))
    rows, squares = rows[:, order], squares[:, order]
    if not len(order):
        return {}
    first = np.flatnonzero(np.concatenate(([True], (rows[:4, 1:] != rows[:4, :-1]).any(axis=0))))
    node, device, metric, stream = rows[:4, first]
    count, total = np.add.reduceat(rows[4], first), np.add.reduceat(sums_of(rows[5]), first, axis=1)
    least, most = np.minimum.reduceat(rows[6], first), np.maximum.reduceat(rows[7], first)
    squares = np.add.reduceat(squares, first, axis=1)
    change = (metric[1:] != metric[:-1]) | (device[1:] != device[:-1]) | (stream[1:] != stream[:-1])
    bounds = [0, *(np.flatnonzero(change) + 1).tolist(), len(first)]
    return {
        (int(metric[begin]), int(device[begin]), int(stream[begin])): Sums(
            node[begin:end],
            count[begin:end],
            total[:, begin:end],
            least[begin:end],
            most[begin:end],
            squares[:, begin:end],
        )
        for begin, end in pairwise(bounds)
    }


def _spreads(shape: Shape, sums: Mapping[Column, Sums]) -> tuple[dict[int, Spread], dict[int, Histogram]]:
    spreads, histograms = {}, {}
    for metric in map(int, SPREADS):
        own = np.zeros(shape.size, np.int64)
        for (kind, _, _), one in sums.items():
            if kind == metric:
                own[one.node] += np.clip((one.total[1] << np.int64(32)) + one.total[0], 0, MOST)
        inclusive = np.clip(subtree_sums(shape, own), 0, MOST)
        node = np.flatnonzero((inclusive > 0) & (inclusive >= inclusive[0] // _SMALLEST))
        if not len(node):
            continue
        value, one_rank, zero = inclusive[node], np.ones(len(node), np.int64), np.zeros(len(node), np.int64)
        spreads[metric] = Spread(node, one_rank, sums_of(value), squares_of(value), value, value, zero, zero)
        histograms[metric] = Histogram.of(node, bins(value), one_rank)
    return spreads, histograms


def _threads(parts: Sequence[_Part]) -> tuple[dict[tuple[bytes, bytes], ThreadSums], list[ThreadSums]]:
    """Sums by group and name, and the main thread of every main process."""
    made: dict[tuple[bytes, bytes], ThreadSums] = {}
    mains = []
    for part in parts:
        tables, groups = part.source.tables, part.group_of
        mains_of = {one.row for one in part.members if one.main}
        first, steps = main_threads(tables), step_rows.rows_of(tables)
        best: dict[int, tuple[bool, int, ThreadSums]] = {}
        for number, values in enumerate(_rows(tables, "threads")):
            row = dict(zip(tables["threads"], values, strict=True))
            process, above = row["process"], int(tables["nodes"]["parent"][row["node"]])
            if process not in groups or above != int(tables["processes"]["node"][process]):
                continue
            main = process in mains_of and number in first
            spent = row["operator_ns"], row["data_ns"], row["wall_ns"], row["cpu_ns"]
            one = ThreadSums(int(main), *spent, steps.get(number, step_rows.StepRows()))
            key = groups[process], part.source.keys[0][int(tables["nodes"]["frame"][row["node"]])]
            made[key] = one if key not in made else both_threads(made[key], one)
            if process in mains_of:
                found = main, row["wall_ns"], one
                best[process] = max(best.get(process, found), found, key=lambda held: held[:2])
        mains += [one for _, _, one in best.values()]
    return made, mains


def _groups(parts: Sequence[_Part]) -> dict[bytes, Group]:
    made: dict[bytes, Group] = {}
    for part in parts:
        text = part.source.tables.strings
        columns = {name: values.tolist() for name, values in part.source.tables["processes"].items()}
        for row, key in part.group_of.items():
            start, end, name = columns["start_ns"][row], columns["end_ns"][row], text[columns["name"][row]]
            one = Group(start, end, bool(columns["complete"][row]), name)
            before = made.get(key)
            made[key] = one if before is None else both_groups(before, one)
    return made


def _losses(parts: Sequence[_Part]) -> dict[tuple[bytes, int, str], int]:
    made: dict[tuple[bytes, int, str], int] = {}
    for part in parts:
        tables, groups = part.source.tables, part.group_of
        for process, kind, count, detail in _rows(tables, "losses"):
            if process in groups:
                key = groups[process], kind, _NUMBERS.sub("*", tables.strings[detail])
                made[key] = made.get(key, 0) + count
    return made


def _rank(facts: RankFacts, parts: Sequence[_Part], values: Mapping[str, tuple[int, int]]) -> Rank:
    mains = [(part, one.row) for part in parts for one in part.members if one.main]
    processes = [
        {name: int(column[row]) for name, column in part.source.tables["processes"].items()} for part, row in mains
    ]
    first = min(range(len(mains)), key=lambda at: (processes[at]["start_ns"], processes[at]["pid"]))
    part, row = mains[first]
    return Rank(
        rank=facts.rank,
        identity=facts.identity,
        group=part.group_of[row],
        local_rank=facts.local_rank,
        host=facts.host,
        role=facts.role,
        status=WHOLE if all(one["complete"] for one in processes) else PARTIAL,
        files=tuple(sorted({part.source.file for part in parts})),
        note=facts.note,
        start_ns=min(one["start_ns"] for one in processes),
        end_ns=max(one["end_ns"] for one in processes),
        values=dict(sorted(values.items())),
    )


def _meta(pieces: Sequence[tuple[Source, Sequence[Member]]], facts: RankFacts | None) -> dict[str, Any]:
    """See `join.joined_meta`. The first file of the rank speaks; cost is counted where the process itself says it."""
    metas = [source.profile.meta for source, _ in pieces]
    first = min(metas, key=lambda meta: (meta["started_at_ns"], json.dumps(meta["program"], sort_keys=True)))
    records = [source.records[one.row] for source, members in pieces for one in members]
    order = [True, 0, ""] if facts is None else [facts.rank < 0, facts.rank, facts.identity]
    kept = {name: first[name] for name in ("program", "asked", "available", "host")}
    totals = dict.fromkeys(COST, 0)
    for record in records:
        for name in totals:
            totals[name] += _whole((record.get("cost") or {}).get(name))
    return {
        **kept,
        "order": [facts is None, *order],
        "cost": totals,
        "wall_of_all_ns": sum(_whole(record.get("wall_ns")) for record in records),
        "started_at_ns": min(meta["started_at_ns"] for meta in metas),
        "ended_at_ns": max(meta["started_at_ns"] + meta["wall_ns"] for meta in metas),
        "complete": all(meta["complete"] for meta in metas),
    }


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _rows(tables: Tables, table: str) -> list[tuple[int, ...]]:
    return list(zip(*(values.tolist() for values in tables[table].values()), strict=True))
