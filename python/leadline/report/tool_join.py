"""What event tools found in one run beside the times of another: tables of both, joined by call path.

Tools slow a program down, and those that look at accesses on a GPU shut out what takes its times; so the two are
measured in two runs and meet here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.profiles.tree import Node
from leadline.schema import MetricKind


@dataclass(frozen=True)
class Joined:
    """The timing run's profile with the tools' tables in it, and how many of their rows found their call path there."""

    profile: Profile
    rows: int
    matched: int


def join(memory: Profile, timing: Profile) -> Joined:
    """`timing` with what tools found in `memory`; tables with call paths get the calls and time of those paths."""
    paths = _Paths(timing)
    rows = matched = 0
    processes = []
    for record in memory.meta.get("processes") or []:
        tools = []
        for found in record.get("tools") or []:
            outputs = []
            for output in found.get("outputs") or []:
                if output.get("kind") == "table":
                    output, of_table, found_there = _with_times(output, paths)
                    rows += of_table
                    matched += found_there
                outputs.append(output)
            tools.append({**found, "outputs": outputs})
        if tools:
            processes.append((record, tools))
    meta = {**timing.meta, "processes": _into(timing.meta.get("processes") or [], processes)}
    return Joined(Profile(timing.tables, meta), rows, matched)


def _into(records: list[Any], tools: list[tuple[Mapping[str, Any], list[Any]]]) -> list[Any]:
    """Tools of a rank go to that rank, others to the process that is as manieth."""
    made = [dict(record) for record in records]
    by_rank = {record.get("rank"): at for at, record in enumerate(made) if record.get("rank", -1) not in (-1, None)}
    for order, (record, found) in enumerate(tools):
        at = by_rank.get(record.get("rank"), min(order, len(made) - 1))
        if made:
            made[at]["tools"] = [*(made[at].get("tools") or []), *found]
    return made


def _with_times(output: Mapping[str, Any], paths: _Paths) -> tuple[Mapping[str, Any], int, int]:
    columns, rows = list(output["columns"]), [list(row) for row in output["rows"]]
    at = next((at for at in range(len(columns)) if any(_is_path(row[at]) for row in rows)), None)
    if at is None:
        return output, 0, 0
    matched = 0
    for row in rows:
        calls, time = paths.find(row[at]["path"]) if _is_path(row[at]) else (None, None)
        matched += calls is not None
        row[at:at] = [calls, time]
    columns[at:at] = [{"name": "calls there", "unit": ""}, {"name": paths.label, "unit": "ns"}]
    return {**output, "columns": columns, "rows": rows}, len(rows), matched


def _is_path(cell: Any) -> bool:
    return isinstance(cell, Mapping) and bool(cell.get("path"))


class _Paths:
    """Call paths of a profile by the words that tools use for them."""

    def __init__(self, profile: Profile) -> None:
        self._tree = profile.tree
        on_device = any(info.kind == MetricKind.GPU_TIME for info in self._tree.measured)
        self._metric = MetricKind.GPU_TIME if on_device else MetricKind.CALL_TIME
        self.label = "time there (device)" if on_device else "time there"
        self._below: dict[int, dict[str, list[int]]] = {}
        self._tops = [node.row for node in self._tree.walk() if node.kind == "thread"]

    def find(self, path: list[str]) -> tuple[int | None, int | None]:
        """Calls and time of a path, over all threads that have it; None where none has."""
        rows = self._tops
        for label in path:
            rows = [below for row in rows for below in self._children(row).get(label, ())]
            if not rows:
                return None, None
        nodes = [self._tree.node(row) for row in rows]
        device = self._metric == MetricKind.GPU_TIME  # a call's time has what is below in it
        stats = [node.inclusive(self._metric) if device else node.exclusive(self._metric) for node in nodes]
        return int(sum(stat.count for stat in stats)), int(sum(stat.sum for stat in stats))

    def _children(self, row: int) -> dict[str, list[int]]:
        known = self._below.get(row)
        if known is None:
            known = self._below[row] = {}
            for child in self._tree.node(row).children:
                known.setdefault(_label(child), []).append(child.row)
        return known


def _label(node: Node) -> str:
    """As a tool's path has it (`leadline.tools.registry.PathFrame`)."""
    if node.kind == "python":
        return f"{node.name} ({node.file.rpartition('/')[2]}:{node.line})"
    return node.name
