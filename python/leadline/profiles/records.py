"""Rows of the small tables as objects: processes, threads, devices, losses. Units and meaning are the schema's."""

from __future__ import annotations

from typing import Any

from leadline._dataclass import dataclass
from leadline.profiles.tables import Tables
from leadline.profiles.tree import Node, Tree, json_object
from leadline.schema import LossKind


@dataclass(frozen=True)
class Process:
    """A process that was followed; `rank` and `local_rank` are -1 where unknown, times CLOCK_REALTIME."""

    row: int
    pid: int
    parent_pid: int
    rank: int
    local_rank: int
    node: Node
    name: str
    start_ns: int
    end_ns: int
    complete: bool


@dataclass(frozen=True)
class Thread:
    """A thread that was seen; `process` is a row of processes."""

    row: int
    process: int
    tid: int
    name: str
    node: Node
    operator_ns: int
    data_ns: int
    wall_ns: int
    cpu_ns: int


@dataclass(frozen=True)
class Device:
    """An accelerator as one process saw it; `row` is what `device` means in metrics and events."""

    row: int
    process: int
    index: int
    name: str
    uuid: str
    memory_bytes: int
    detail: dict[str, Any]


@dataclass(frozen=True)
class Loss:
    """Something that was not measured: how often, and one sentence or nothing."""

    process: int
    kind: LossKind
    count: int
    detail: str


def _rows(tables: Tables, table: str) -> list[dict[str, int]]:
    columns = tables[table]
    lists = [values.tolist() for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def processes(tables: Tables, tree: Tree) -> list[Process]:
    text = tables.strings
    made = []
    for number, row in enumerate(_rows(tables, "processes")):
        values: dict[str, Any] = {**row, "name": text[row["name"]], "node": tree.node(row["node"])}
        made.append(Process(row=number, **{**values, "complete": bool(row["complete"])}))
    return made


def threads(tables: Tables, tree: Tree) -> list[Thread]:
    text = tables.strings
    made = []
    for number, row in enumerate(_rows(tables, "threads")):
        values: dict[str, Any] = {**row, "name": text[row["name"]], "node": tree.node(row["node"])}
        made.append(Thread(row=number, **values))
    return made


def devices(tables: Tables) -> list[Device]:
    text = tables.strings
    made = []
    for number, row in enumerate(_rows(tables, "devices")):
        values: dict[str, Any] = {**row, "name": text[row["name"]], "uuid": text[row["uuid"]]}
        made.append(Device(row=number, **{**values, "detail": json_object(text[row["detail"]])}))
    return made


def losses(tables: Tables) -> list[Loss]:
    text = tables.strings
    return [
        Loss(row["process"], LossKind(row["kind"]), row["count"], text[row["detail"]])
        for row in _rows(tables, "losses")
    ]
