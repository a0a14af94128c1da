"""The tables: findings, operators, kernels, modules, lines, memory, collectives, ranks. Plain data; times are
nanoseconds, sizes bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from leadline.analysis import analysis_of, breakdown
from leadline.analysis.findings import Findings
from leadline.analysis.lines import lines, processes
from leadline.analysis.rows import KernelRow
from leadline.profiles import Profile
from leadline.report.model import HotPath, Report
from leadline.report.phrases import below_text, place_text
from leadline.report.source import short_names
from leadline.units import duration, number, share, size

Value = str | int | float


@dataclass(frozen=True)
class Column:
    """`unit`: "text", "ns", "bytes", "share" (0 to 1), "count" or "id" (a number that is a name)."""

    title: str
    unit: str = "text"

    def cell(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        shown = {"ns": duration, "bytes": size, "count": number}
        if self.unit in shown:
            return shown[self.unit](value)
        return share(value, 1.0) if self.unit == "share" else str(value) if value >= 0 else "-"


@dataclass(frozen=True)
class Row:
    """`node`: where it stands in the tree, -1 for no single place: then `search` finds it. `file`, `line`: its
    source."""

    cells: tuple[Value, ...]
    node: int = -1
    search: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class TableData:
    """`sort`: the column that orders the rows as given, the largest first. `empty`: what to say where there are
    none."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sort: int
    empty: str
    note: str = ""


def sorted_rows(table: TableData, column: int, descending: bool) -> list[Row]:
    """By one column, ties in the order given; texts without regard to case."""
    if table.columns[column].unit == "text":
        return sorted(table.rows, key=lambda row: str(row.cells[column]).casefold(), reverse=descending)
    return sorted(table.rows, key=lambda row: float(row.cells[column]), reverse=descending)


class TableMaker:
    """Makes the tables of one profile, each when it is asked for."""

    def __init__(self, profile: Profile, report: Report, findings: Callable[[], Findings]) -> None:
        self.profile = profile
        self.report = report
        self._findings = findings
        self._analysis = analysis_of(profile)
        self._made: dict[str, TableData] = {}

    def table(self, name: str) -> TableData:
        """Raises KeyError for a name that is not in NAMES."""
        if name not in self._made:
            self._made[name] = _without_empty(_MAKERS[name](self))
        return self._made[name]

    @property
    def _everything(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.ones(len(self.profile.tree), np.bool_)

    def findings(self) -> TableData:
        found = self._findings()
        rows = []
        for one in found.findings:
            line = one.lines[0] if one.lines else None
            where = f"{line.short}:{line.line}" if line else ""
            cells = (one.title, str(one.severity.value), one.gain.expected_ns, one.gain.share, where, one.remedy)
            node = one.paths[0] if one.paths else -1
            rows.append(Row(cells, node, "", line.file if line else "", line.line if line else 0))
        columns = (Column("finding"), Column("severity"), Column("gain", "ns"), Column("of the step", "share"))
        empty = "No rule found a problem; `leadline analyze` lists the rules that ran."
        places = (Column("line"), Column("what to do"))
        return TableData("findings", "Findings", (*columns, *places), tuple(rows), 2, empty)

    def operators(self) -> TableData:
        rows = breakdown.operators(self.profile.tree, self._analysis.scopes, self._everything)
        total = sum(row.time.self for row in rows) or 1
        titles = (("operator", "text"), ("calls", "count"), ("self", "ns"), ("share", "share"), ("total", "ns"))
        times = (("mean", "ns"), ("min", "ns"), ("max", "ns"), ("std", "ns"), ("GPU", "ns"), ("allocated", "bytes"))
        made = []
        for row in rows:
            time = row.time
            cells = (row.name, row.count, time.self, time.self / total, time.sum, time.mean, time.min, time.max)
            made.append(Row((*cells, time.std, row.gpu_time_ns, row.alloc_bytes), search=row.name))
        empty = "No operator was measured."
        return TableData("operators", "Operators", _columns(*titles, *times), tuple(made), 2, empty)

    def kernels(self) -> TableData:
        rows = breakdown.kernels(self.profile.tree, self._everything)
        return _device_table("kernels", "On the device", rows, "No device work was measured in this run.")

    def collectives(self) -> TableData:
        rows = [row for row in breakdown.kernels(self.profile.tree, self._everything) if row.kind == "collective"]
        return _device_table("collectives", "Collectives", rows, "No collective on a device was measured in this run.")

    def modules(self) -> TableData:
        rows = breakdown.modules(self.profile.tree, self._analysis.scopes, self._everything, merge_layers=True)
        titles = (("module", "text"), ("class", "text"), ("modules", "count"), ("total", "ns"), ("forward", "ns"))
        others = (("backward", "ns"), ("self", "ns"), ("GPU", "ns"), ("allocated", "bytes"))
        made = []
        for row in rows:
            cells = (row.name, row.class_name, row.modules, row.time_ns, row.forward_ns, row.backward_ns, row.self_ns)
            made.append(Row((*cells, row.gpu_time_ns, row.alloc_bytes), search=row.name))
        empty = "No nn.Module was called while measuring."
        return TableData("modules", "Modules", _columns(*titles, *others), tuple(made), 3, empty)

    def lines(self) -> TableData:
        """Everything is booked on the innermost line of the user's own code above it."""
        rows = lines(self.profile.tree, self._analysis.scopes, self._everything)
        base = (self.profile.meta.get("program") or {}).get("cwd") or ""
        short = short_names((row.file for row in rows), base if isinstance(base, str) else "")
        made = []
        for row in rows:
            times = (row.time_ns, row.calls, row.gpu_time_ns, row.wait_ns, row.alloc_bytes, row.peak_bytes)
            cells = (f"{short[row.file]}:{row.line}", row.function, *times)
            made.append(Row(cells, row.node, "", row.file, row.line))
        titles = (("line", "text"), ("function", "text"), ("time", "ns"), ("calls", "count"), ("GPU", "ns"))
        others = (("waited", "ns"), ("allocated", "bytes"), ("at the peak", "bytes"))
        gpu = any(row.gpu_time_ns for row in rows)
        empty = "No measurement has a Python line."
        return TableData("lines", "Your lines", _columns(*titles, *others), tuple(made), 4 if gpu else 2, empty)

    def memory(self) -> TableData:
        """Who held tensor memory at the moment of largest use, on every device."""
        memory = self.report.memory
        made = []
        for peak in memory.peaks if memory else ():
            for path in peak.holders:
                held = path.values.get("peak_live_bytes", 0)
                cells = (_path_text(path), held, held / (peak.peak_bytes or 1), peak.device)
                place = path.place
                made.append(Row(cells, path.node, "", place.file if place else "", place.line if place else 0))
        note = ""
        if memory:
            note = f"{size(memory.allocated_bytes)} in {number(memory.allocations)} allocations"
        columns = _columns(("path", "text"), ("held", "bytes"), ("share", "share"), ("device", "text"))
        empty = "Tensor memory was not measured in this run."
        return TableData("memory", "Memory at the peak", columns, tuple(made), 1, empty, note)

    def ranks(self) -> TableData:
        made = []
        for row in processes(self.profile):
            ended = "in order" if row.complete else "killed"
            times = (row.wall_ns, row.operators_ns, row.data_ns, row.cpu_ns, row.gpu_time_ns)
            made.append(Row((row.name, row.rank, row.pid, *times, row.threads, ended), row.node))
        titles = (("process", "text"), ("rank", "id"), ("pid", "id"), ("wall", "ns"), ("operators", "ns"))
        others = (("data loading", "ns"), ("CPU", "ns"), ("GPU", "ns"), ("threads", "count"), ("ended", "text"))
        empty = "The file names no process."
        return TableData("ranks", "Processes and ranks", _columns(*titles, *others), tuple(made), 3, empty)


_MAKERS: dict[str, Callable[[TableMaker], TableData]] = {
    "findings": TableMaker.findings,
    "operators": TableMaker.operators,
    "kernels": TableMaker.kernels,
    "modules": TableMaker.modules,
    "lines": TableMaker.lines,
    "memory": TableMaker.memory,
    "collectives": TableMaker.collectives,
    "ranks": TableMaker.ranks,
}
NAMES = tuple(_MAKERS)


def _columns(*columns: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(title, unit) for title, unit in columns)


def _device_table(name: str, title: str, rows: list[KernelRow], empty: str) -> TableData:
    total = sum(row.gpu_time.sum for row in rows)
    made = []
    for row in rows:
        time = row.gpu_time
        cells = (row.name, row.kind, row.count, time.sum, time.sum / (total or 1), time.mean, time.min, time.max)
        made.append(Row((*cells, time.std), search=row.name))
    titles = (("name", "text"), ("kind", "text"), ("times", "count"), ("total", "ns"), ("share", "share"))
    columns = _columns(*titles, ("mean", "ns"), ("min", "ns"), ("max", "ns"), ("std", "ns"))
    return TableData(name, title, columns, tuple(made), 3, empty, f"{duration(total)} in all" if total else "")


def _without_empty(table: TableData) -> TableData:
    """Without the columns of numbers that are zero in every row: what was not measured is no column."""
    optional = ("GPU", "waited", "allocated", "at the peak", "data loading", "CPU")
    kept = [
        i
        for i, column in enumerate(table.columns)
        if column.title not in optional or any(row.cells[i] for row in table.rows)
    ]
    rows = tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in table.rows)
    columns = tuple(table.columns[i] for i in kept)
    return replace(table, columns=columns, rows=rows, sort=kept.index(table.sort))


def _path_text(path: HotPath) -> str:
    below = below_text(path, notes=False)
    return f"{place_text(path.place)}  {below}" if below else place_text(path.place)
