"""A folded profile as a `Fold` again, so that it can be joined with more ranks: nothing in it was rounded."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.profiles.codetables import code_of
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.fold.keys import frame_keys
from leadline.profiles.fold.state import (
    COST,
    MISSING,
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
)
from leadline.profiles.fold.wide import Limbs, from_pair, limbs_of_floats, sums_of
from leadline.profiles.mains import main_threads
from leadline.profiles.profile import Profile
from leadline.profiles.step_rows import StepRows, rows_of
from leadline.profiles.tables import Array, Tables
from leadline.schema import LossKind

_OF_MERGING = (int(LossKind.RANK_MISSING), int(LossKind.FILE_LEFT_OUT))


def is_folded(meta: Mapping[str, Any]) -> bool:
    """Whether a file's meta.json says that it holds folded ranks."""
    fold = meta.get("fold")
    return isinstance(fold, dict) and isinstance(fold.get("by"), str) and isinstance(fold.get("order"), list)


def restored(profile: Profile, name: str) -> Fold:
    """The `Fold`. Ranks that were missing are forgotten, since they may be among what is joined. Raises
    ProfileFileError for a file that was changed since it was folded."""
    tables = profile.tables
    if tables.rows("metric_squares") != tables.rows("metrics") or not is_folded(profile.meta):
        raise ProfileFileError(f"{name} was changed after its ranks were folded; fold their own files instead.")
    keys, files = frame_keys(tables)
    nodes = tables["nodes"]
    parent, frame = nodes["parent"].astype(np.int64), nodes["frame"].astype(np.int64)
    node_of = tables["processes"]["node"].tolist()
    group_of = [keys[int(frame[node])] for node in node_of]
    ranks, kept = _ranks(tables, group_of)
    fold = profile.meta["fold"]
    return Fold(
        by=fold["by"],
        keys=keys,
        files=files,
        parent=parent,
        frame=frame,
        holders=_holders(tables),
        sums=_sums(tables["metrics"], from_pair(tables["metric_squares"]["high"], tables["metric_squares"]["low"])),
        spreads=_spreads(tables, kept),
        histograms=_histograms(tables),
        ranks=ranks,
        groups=_groups(tables, group_of),
        threads=_threads(tables, group_of, keys),
        devices=_devices(tables, group_of),
        losses=_losses(tables, group_of),
        meta={
            **{name: profile.meta[name] for name in ("program", "asked", "available", "host")},
            "order": fold["order"],
            "cost": {name: profile.meta["cost"].get(name) or 0 for name in COST},
            "wall_of_all_ns": int(fold.get("wall_of_all_ns") or 0),
            "started_at_ns": profile.meta["started_at_ns"],
            "ended_at_ns": profile.meta["started_at_ns"] + profile.meta["wall_ns"],
            "complete": bool(fold.get("complete")),
        },
        code=code_of(tables),
        alone=_alone(tables, kept),
    )


def stored_ranks(tables: Tables) -> list[Rank]:
    """The table of ranks, missing ones too, each with what it spent on what. `group` is empty."""
    text = tables.strings
    values: list[dict[str, tuple[int, int]]] = [{} for _ in range(tables.rows("ranks"))]
    for row, name, value, count in _rows(tables, "rank_values"):
        values[row][text[name]] = value, count
    return [
        Rank(
            rank=row["rank"],
            identity=text[row["identity"]],
            local_rank=row["local_rank"],
            host=text[row["host"]],
            role=text[row["role"]],
            status=row["status"],
            files=tuple(filter(None, text[row["files"]].split("\n"))),
            note=text[row["note"]],
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            values=values[number],
        )
        for number, row in enumerate(named_rows(tables, "ranks"))
    ]


def named_rows(tables: Tables, table: str) -> list[dict[str, int]]:
    """Rows of a table as mappings."""
    return [dict(zip(tables[table], row, strict=True)) for row in _rows(tables, table)]


def _rows(tables: Tables, table: str) -> list[tuple[int, ...]]:
    return list(zip(*(values.tolist() for values in tables[table].values()), strict=True))


def _ranks(tables: Tables, group_of: list[bytes]) -> tuple[list[Rank], Ids]:
    """Those that were read, and for every row its place among them."""
    process = tables["ranks"]["process"].tolist()
    stored = stored_ranks(tables)
    place = np.zeros(len(stored), np.int64)
    found: list[Rank] = []
    for row, rank in enumerate(stored):
        place[row] = len(found)
        if rank.status != MISSING and process[row] >= 0:
            found.append(replace(rank, group=group_of[process[row]]))
    return found, place


def _holders(tables: Tables) -> Ids:
    if not tables.rows("node_ranks"):  # of a release that did not count them
        return np.zeros(tables.rows("nodes"), np.int64)
    return tables["node_ranks"]["ranks"].astype(np.int64)


def _alone(tables: Tables, place: Ids) -> dict[int, dict[Column, Sums]]:
    table = tables["rank_metrics"]
    made = {}
    for rank in np.unique(table["rank"]).tolist():
        here = table["rank"] == rank
        one = {name: values[here] for name, values in table.items()}
        made[int(place[rank])] = _sums(one, limbs_of_floats(one["sum_squares"]))
    return made


def _sums(metrics: Mapping[str, Array], squares: Limbs) -> dict[Column, Sums]:
    """Of columns as in the table metrics, with the exact squares of its rows."""
    order = np.lexsort((metrics["node"], metrics["stream"], metrics["device"], metrics["metric"]))
    column: dict[str, NDArray[np.int64]] = {
        name: values[order].astype(np.int64) for name, values in metrics.items() if name not in ("sum_squares", "rank")
    }
    total = sums_of(column["sum"])
    limbs = squares[:, order]
    made: dict[Column, Sums] = {}
    if not len(order):
        return made
    change = np.zeros(len(order) - 1, np.bool_)
    for name in ("metric", "device", "stream"):
        change |= column[name][1:] != column[name][:-1]
    bounds = [0, *(np.flatnonzero(change) + 1).tolist(), len(order)]
    for begin, end in pairwise(bounds):
        key = (int(column["metric"][begin]), int(column["device"][begin]), int(column["stream"][begin]))
        made[key] = Sums(
            column["node"][begin:end],
            column["count"][begin:end],
            total[:, begin:end],
            column["min"][begin:end],
            column["max"][begin:end],
            limbs[:, begin:end],
        )
    return made


def _spreads(tables: Tables, place: Ids) -> dict[int, Spread]:
    table = tables["rank_stats"]
    made = {}
    for metric in np.unique(table["metric"]).tolist():
        here = table["metric"] == metric
        one = {name: values[here] for name, values in table.items()}
        made[metric] = Spread(
            one["node"].astype(np.int64),
            one["ranks"].astype(np.int64),
            np.stack((one["sum_low"].astype(np.int64), one["sum_high"])),
            from_pair(one["squares_high"], one["squares_low"]),
            one["min"],
            one["max"],
            place[one["min_rank"].astype(np.int64)],
            place[one["max_rank"].astype(np.int64)],
        )
    return made


def _histograms(tables: Tables) -> dict[int, Histogram]:
    table = tables["rank_histogram"]
    made = {}
    for metric in np.unique(table["metric"]).tolist():
        here = table["metric"] == metric
        made[metric] = Histogram.of(*(table[name][here] for name in ("node", "bin", "ranks")))
    return made


def _groups(tables: Tables, group_of: list[bytes]) -> dict[bytes, Group]:
    text = tables.strings
    return {
        key: Group(row["start_ns"], row["end_ns"], bool(row["complete"]), text[row["name"]])
        for key, row in zip(group_of, named_rows(tables, "processes"), strict=True)
    }


def _threads(tables: Tables, group_of: list[bytes], keys: list[bytes]) -> dict[tuple[bytes, bytes], ThreadSums]:
    frame = tables["nodes"]["frame"]
    mains, steps = main_threads(tables), rows_of(tables)
    return {
        (group_of[row["process"]], keys[int(frame[row["node"]])]): ThreadSums(
            mains.get(number, 0), row["operator_ns"], row["data_ns"], row["wall_ns"], row["cpu_ns"],
            steps.get(number, StepRows()),
        )
        for number, row in enumerate(named_rows(tables, "threads"))
    }  # fmt: skip


def _devices(tables: Tables, group_of: list[bytes]) -> list[DeviceKind]:
    text = tables.strings
    return [
        DeviceKind(group_of[row["process"]], row["index"], text[row["name"]], row["memory_bytes"], text[row["detail"]])
        for row in named_rows(tables, "devices")
    ]


def _losses(tables: Tables, group_of: list[bytes]) -> dict[tuple[bytes, int, str], int]:
    made: dict[tuple[bytes, int, str], int] = {}
    for process, kind, count, detail in _rows(tables, "losses"):
        if kind not in _OF_MERGING:
            made[group_of[process], kind, tables.strings[detail]] = count
    return made
