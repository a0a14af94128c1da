"""The tables of the page: every operator, module, kernel, line and process, not only the largest."""

from __future__ import annotations

from typing import Any

from leadline._dataclass import asdict, dataclass
from leadline.analysis import Analysis, breakdown
from leadline.analysis.columns import Mask
from leadline.analysis.lines import LineRow, ProcessRow, lines, processes
from leadline.analysis.rows import KernelRow, ModuleRow, OperatorRow

MOST_ROWS = 5_000
"""Of a table: a page sorts and filters them, and is sent on."""


@dataclass(frozen=True)
class WholeTables:
    """`layers`: modules by themselves, `modules`: those that differ in layer numbers alone as one. `of`: how many rows
    each table has, shown or not."""

    operators: tuple[OperatorRow, ...]
    modules: tuple[ModuleRow, ...]
    layers: tuple[ModuleRow, ...]
    kernels: tuple[KernelRow, ...]
    lines: tuple[LineRow, ...]
    processes: tuple[ProcessRow, ...]
    of: dict[str, int]


def whole_tables(analysis: Analysis, kept: Mask, most: int = MOST_ROWS) -> WholeTables:
    tree, scopes = analysis.tree, analysis.scopes
    made: dict[str, list[Any]] = {
        "operators": breakdown.operators(tree, scopes, kept),
        "modules": breakdown.modules(tree, scopes, kept, merge_layers=True),
        "layers": breakdown.modules(tree, scopes, kept, merge_layers=False),
        "kernels": breakdown.kernels(tree, kept),
        "lines": lines(tree, scopes, kept),
        "processes": processes(analysis.profile),
    }
    cut = {name: tuple(rows[:most]) for name, rows in made.items()}
    return WholeTables(**cut, of={name: len(rows) for name, rows in made.items()})


def as_json(tables: WholeTables) -> dict[str, Any]:
    """Rows named as in the JSON report."""
    found = asdict(tables)
    for row in found["operators"]:
        row["time_ns"] = row.pop("time")
    for row in found["kernels"]:
        row["gpu_time_ns"] = row.pop("gpu_time")
    return found
