"""The operator, module and phase tables: sums over the tree by name. All functions are pure; `kept` masks the nodes
that count.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Tree
from leadline.profiles.measures import Measures
from leadline.profiles.repeats import without_repeats
from leadline.report.hotpaths import merged_layers
from leadline.report.model import Distribution, ModuleRow, OperatorRow, PhaseRow
from leadline.report.scopes import Rows, Scopes
from leadline.schema import FrameKind

Mask = NDArray[np.bool_]


def distributions(measures: Measures, rows: Rows, group: Rows, own: Rows) -> list[Distribution]:
    """One distribution per group: `rows` are the nodes measured, `group[i]` the group of `rows[i]`, `own` the
    exclusive sum of each group.
    """
    groups = len(own)
    count, total = (np.zeros(groups, np.int64) for _ in range(2))
    squares = np.zeros(groups, np.float64)
    low = np.full(groups, np.iinfo(np.int64).max)
    high = np.full(groups, np.iinfo(np.int64).min)
    np.add.at(count, group, measures.count[rows])
    np.add.at(total, group, measures.sum[rows])
    np.add.at(squares, group, measures.sum_squares[rows])
    np.minimum.at(low, group, measures.min[rows])
    np.maximum.at(high, group, measures.max[rows])
    made = []
    for n, s, self_, least, most, square in zip(count, total, own, low, high, squares, strict=True):
        if not n:
            made.append(Distribution(0, int(self_), 0, 0, 0.0, 0.0))
            continue
        mean = float(s) / float(n)
        variance = max(0.0, float(square) / float(n) - mean * mean)
        std = variance**0.5 if np.isfinite(variance) else 0.0
        made.append(Distribution(int(s), int(self_), int(least), int(most), mean, std))
    return made


def operators(tree: Tree, scopes: Scopes, kept: Mask) -> list[OperatorRow]:
    """Every operator by name, the largest exclusive time first. Unsorted ties keep the order of the tree."""
    rows = np.flatnonzero((tree.kinds == int(FrameKind.OPERATOR)) & kept)
    if not len(rows):
        return []
    names = tree.frames["name"][tree.frame_of]
    distinct, group = np.unique(names[rows], return_inverse=True)
    calls = without_repeats(tree)
    own = np.zeros(len(distinct), np.int64)
    np.add.at(own, group, tree.exclusive("time").sum[rows])
    times = distributions(calls, rows, group, own)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, group, calls.count[rows])
    gpu = _sums_by_operator(tree, scopes, kept, "gpu_time", names, distinct)
    alloc = _sums_by_operator(tree, scopes, kept, "alloc_bytes", names, distinct)
    text = tree.tables.strings
    made = [
        OperatorRow(text[int(name)], int(counts[i]), times[i], int(gpu[i]), int(alloc[i]))
        for i, name in enumerate(distinct.tolist())
    ]
    return sorted(made, key=lambda row: (-row.time.self, row.name))


def _sums_by_operator(
    tree: Tree, scopes: Scopes, kept: Mask, metric: str, names: NDArray[np.uint32], distinct: NDArray[np.uint32]
) -> Rows:
    """Exclusive sums booked on the nearest operator above each node (device work hangs below API calls below
    operators).
    """
    sums = np.zeros(len(distinct), np.int64)
    values = tree.exclusive(metric).sum
    rows = np.flatnonzero((values != 0) & kept & (scopes.inner >= 0))
    np.add.at(sums, np.searchsorted(distinct, names[scopes.inner[rows]]), values[rows])
    return sums


@dataclass
class _ModuleSums:
    class_name: str = ""
    names: set[str] = field(default_factory=set)
    cpu: int = 0
    own: int = 0
    backward: int = 0
    gpu: int = 0
    alloc: int = 0


def modules(tree: Tree, scopes: Scopes, kept: Mask, merge_layers: bool) -> list[ModuleRow]:
    """Every nn.Module by qualified name, with what its submodules took; the largest CPU (else GPU) time first."""
    named = merged_layers if merge_layers else str
    sums: dict[str, _ModuleSums] = defaultdict(_ModuleSums)
    chains: dict[int, tuple[str, ...]] = {-1: ()}
    for row in np.flatnonzero(tree.kinds == int(FrameKind.MODULE)).tolist():  # parents have smaller rows
        frame = int(tree.frame_of[row])
        qualified = tree.text("name", frame)
        name = named(qualified)
        above = chains[int(scopes.module[tree.parent[row]])]
        chains[row] = above if name in above else (*above, name)
        sums[name].class_name = tree.text("module", frame)
        sums[name].names.add(qualified)
    for metric in ("time", "gpu_time", "alloc_bytes"):
        values = tree.exclusive(metric).sum
        for row in np.flatnonzero((values != 0) & kept & (scopes.module >= 0)).tolist():
            value = int(values[row])
            names = chains[int(scopes.module[row])]
            for name in names:
                _book(sums[name], metric, value)
            if metric == "time":
                sums[named(tree.text("name", int(tree.frame_of[scopes.module[row]])))].own += value
                if _phase(tree, scopes, row) == "backward":
                    for name in names:
                        sums[name].backward += value
    made = [
        ModuleRow(name, m.class_name, m.cpu, m.own, m.cpu - m.backward, m.backward, m.gpu, m.alloc, len(m.names))
        for name, m in sums.items()
        if m.cpu or m.gpu or m.alloc
    ]
    return sorted(made, key=lambda row: (-row.time_ns, -row.gpu_time_ns, row.name))


def _book(sums: _ModuleSums, metric: str, value: int) -> None:
    if metric == "time":
        sums.cpu += value
    elif metric == "gpu_time":
        sums.gpu += value
    else:
        sums.alloc += value


def _phase(tree: Tree, scopes: Scopes, row: int) -> str:
    phase = int(scopes.phase[row])
    return tree.text("name", int(tree.frame_of[phase])) if phase >= 0 else ""


def phases(tree: Tree, scopes: Scopes, kept: Mask) -> list[PhaseRow]:
    """Exclusive sums by the nearest phase; the rows add up to the whole. Empty where nothing ran inside a phase."""
    names = np.zeros(len(tree), np.int64) - 1
    inside = scopes.phase >= 0
    names[inside] = tree.frames["name"][tree.frame_of[scopes.phase[inside]]]
    distinct, group = np.unique(names, return_inverse=True)
    if len(distinct) == 1 and distinct[0] == -1:
        return []
    columns = []
    for metric in ("time", "gpu_time", "alloc_bytes"):
        sums = np.zeros(len(distinct), np.int64)
        values = np.where(kept, tree.exclusive(metric).sum, 0)
        np.add.at(sums, group, values)
        columns.append(sums)
    calls = np.zeros(len(distinct), np.int64)
    is_operator = tree.kinds == int(FrameKind.OPERATOR)
    np.add.at(calls, group, np.where(kept & is_operator, tree.exclusive("call_time").count, 0))
    made = [
        PhaseRow(
            tree.tables.strings[name] if name >= 0 else "",
            int(columns[0][i]),
            int(columns[1][i]),
            int(columns[2][i]),
            int(calls[i]),
        )
        for i, name in enumerate(distinct.tolist())
    ]
    shown = [row for row in made if row.time_ns or row.gpu_time_ns or row.alloc_bytes or row.operators]
    return sorted(shown, key=lambda row: (-row.time_ns, -row.gpu_time_ns, row.name))
