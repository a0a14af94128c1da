"""The operator, module, phase and kernel tables: sums over the tree by name. All functions are pure; `kept` masks the
nodes that count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Mask, Rows, at_rows, distinct, group_sums, preorder, subtree_sums
from leadline.analysis.layers import merged_layers
from leadline.analysis.rows import Distribution, KernelRow, ModuleRow, OperatorRow, PhaseRow
from leadline.analysis.scopes import Scopes
from leadline.profiles import Measures, Tree
from leadline.profiles.repeats import without_repeats
from leadline.profiles.rollup import Shape
from leadline.schema import FrameKind

BACKWARD = "backward"


def distributions(measures: Measures, rows: Rows, group: Rows, own: Rows) -> list[Distribution]:
    """One distribution per group: `rows` are the nodes measured, `group[i]` the group of `rows[i]`, `own` the
    exclusive sum of each group.
    """
    groups = len(own)
    count, total = (group_sums(group, column[rows], groups) for column in (measures.count, measures.sum))
    squares = np.bincount(group, measures.sum_squares[rows], groups)
    low = np.full(groups, np.iinfo(np.int64).max)
    high = np.full(groups, np.iinfo(np.int64).min)
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
    """Every operator by name, the largest exclusive time first, ties by name.

    Device work and memory are booked on the nearest operator above them. Where that is not kept (a focus below it),
    its row has no calls and no time, but what was kept of its work.
    """
    own_operator = np.where(tree.kinds == int(FrameKind.OPERATOR), np.arange(len(tree)), -1)
    holder = np.where(kept, scopes.inner, -1)
    names = at_rows(tree.frames["name"][tree.frame_of], holder)
    found, group = distinct(names)
    found, group = (found[1:], group - 1) if len(found) and found[0] < 0 else (found, group)
    rows = np.flatnonzero(kept & (own_operator >= 0))
    calls = without_repeats(tree)
    number = len(found)
    own = group_sums(group[rows], tree.exclusive("time").sum[rows], number)
    times = distributions(calls, rows, group[rows], own)
    counts = group_sums(group[rows], calls.count[rows], number)
    gpu, alloc = (group_sums(group, tree.exclusive(metric).sum, number) for metric in ("gpu_time", "alloc_bytes"))
    called = np.zeros(number, np.bool_)
    called[group[rows]] = True
    text = tree.tables.strings
    made = [
        OperatorRow(text[name], int(counts[i]), times[i], int(gpu[i]), int(alloc[i]))
        for i, name in enumerate(found.tolist())
        if called[i] or gpu[i] or alloc[i]
    ]
    return sorted(made, key=lambda row: (-row.time.self, row.name))


def modules(tree: Tree, scopes: Scopes, kept: Mask, merge_layers: bool) -> list[ModuleRow]:
    """Every nn.Module by qualified name, with what its submodules took; the largest time (else GPU time) first.

    A module inside one of the same name (a recursive one, or a merged layer in a merged layer) counts once.
    """
    rows = np.flatnonzero(tree.kinds == int(FrameKind.MODULE))
    if not len(rows):
        return []
    names, group = _module_names(tree, rows, merge_layers)
    place = np.full(len(tree), -1, np.int64)  # of a module's node among the modules, from 1: row 0 is above all
    place[rows] = np.arange(1, len(rows) + 1)
    parents = np.maximum(at_rows(place, scopes.module[np.maximum(tree.shape.parent[rows], 0)]), 0)
    shape = Shape(np.concatenate(([-1], parents)))
    outermost = outermost_of_name(shape, group)
    holder = np.where(kept, at_rows(place, scopes.module), -1)

    def own(values: NDArray[np.int64]) -> Rows:
        return group_sums(holder, values, len(rows) + 1)

    def whole(values: NDArray[np.int64]) -> Rows:
        inclusive = subtree_sums(shape, own(values))[1:]
        return group_sums(np.where(outermost, group, -1), inclusive, len(names))

    time = tree.exclusive("time").sum
    total, backward = whole(time), whole(np.where(nearest_phase_is(tree, scopes, BACKWARD), time, 0))
    selves = group_sums(group, own(time)[1:], len(names))
    gpu, alloc = whole(tree.exclusive("gpu_time").sum), whole(tree.exclusive("alloc_bytes").sum)
    classes = np.unique(np.stack((group, tree.frames["module"][tree.frame_of[rows]].astype(np.int64))), axis=1)
    named: dict[int, list[str]] = {}
    for number, text in classes.T.tolist():
        named.setdefault(number, []).append(tree.tables.strings[text])
    qualified = np.unique(np.stack((group, tree.frames["name"][tree.frame_of[rows]].astype(np.int64))), axis=1)
    merged = np.bincount(qualified[0], minlength=len(names))
    made = [
        ModuleRow(
            name,
            _classes_text(named[i]),
            int(total[i]),
            int(selves[i]),
            int(total[i] - backward[i]),
            int(backward[i]),
            int(gpu[i]),
            int(alloc[i]),
            int(merged[i]),
        )
        for i, name in enumerate(names)
        if total[i] or gpu[i] or alloc[i]
    ]
    return sorted(made, key=lambda row: (-row.time_ns, -row.gpu_time_ns, row.name))


_MOST_CLASSES = 4


def _classes_text(classes: Sequence[str]) -> str:
    """`Conv2d, ReLU`; of very many as many as fit a row: `BatchNorm2d, Conv2d, Linear and 4 others`."""
    listed = sorted(filter(None, classes))
    if len(listed) <= _MOST_CLASSES:
        return ", ".join(listed)
    return f"{', '.join(listed[: _MOST_CLASSES - 1])} and {len(listed) - _MOST_CLASSES + 1} others"


def _module_names(tree: Tree, rows: Rows, merge_layers: bool) -> tuple[list[str], Rows]:
    """Distinct names of these nodes, and for each node the number of its name."""
    ids, of_row = np.unique(tree.frames["name"][tree.frame_of[rows]], return_inverse=True)
    numbers: dict[str, int] = {}
    texts = (tree.tables.strings[row] for row in ids.tolist())
    of_id = [numbers.setdefault(merged_layers(text) if merge_layers else text, len(numbers)) for text in texts]
    return list(numbers), np.array(of_id, np.int64)[of_row]


def outermost_of_name(shape: Shape, group: Rows) -> Mask:
    """Which rows 1.. of `shape` have no ancestor of their own group: none of the group ended its subtree after them."""
    place, size = (column[1:] for column in preorder(shape))
    order = np.lexsort((place, group))
    begin, end = place[order], (place + size)[order]
    offset = group[order] * (shape.size + 1)  # so that a running maximum never reaches into the next group
    ended = np.maximum.accumulate(end + offset)
    outermost = np.ones(len(group), np.bool_)
    outermost[order[1:]] = begin[1:] + offset[1:] >= ended[:-1]
    return outermost


def nearest_phase_is(tree: Tree, scopes: Scopes, name: str) -> Mask:
    """Nodes whose nearest phase has that name."""
    called = np.isin(tree.frames["name"], tree.tables.strings.rows_equal(name))[tree.frame_of]
    return at_rows(called, scopes.phase, 0) > 0


def phases(tree: Tree, scopes: Scopes, kept: Mask) -> list[PhaseRow]:
    """Exclusive sums by the nearest phase; the rows add up to the whole. Empty where nothing ran inside a phase."""
    names = at_rows(tree.frames["name"][tree.frame_of], scopes.phase)
    found, group = distinct(names)
    if len(found) == 1 and found[0] == -1:
        return []
    group = np.where(kept, group, -1)
    is_operator = tree.kinds == int(FrameKind.OPERATOR)
    columns = [tree.exclusive(metric).sum for metric in ("time", "gpu_time", "alloc_bytes")]
    columns.append(np.where(is_operator, tree.exclusive("call_time").count, 0))
    sums = [group_sums(group, values, len(found)).tolist() for values in columns]
    made = [
        PhaseRow(tree.tables.strings[name] if name >= 0 else "", *(column[i] for column in sums))
        for i, name in enumerate(found.tolist())
    ]
    shown = [row for row in made if row.time_ns or row.gpu_time_ns or row.alloc_bytes or row.operators]
    return sorted(shown, key=lambda row: (-row.time_ns, -row.gpu_time_ns, row.name))


def kernels(tree: Tree, kept: Mask) -> list[KernelRow]:
    """Device work by name and kind, the most expensive first."""
    time = tree.exclusive("gpu_time")
    nodes = np.flatnonzero((time.count > 0) & kept)
    if not len(nodes):
        return []
    names = tree.frames["name"][tree.frame_of[nodes]].astype(np.int64)
    found, group = distinct(names * 256 + tree.kinds[nodes])
    counts, own = (group_sums(group, column[nodes], len(found)) for column in (time.count, time.sum))
    rows = []
    for i, one in enumerate(distributions(time, nodes, group, own)):
        name, kind = divmod(int(found[i]), 256)
        rows.append(KernelRow(tree.tables.strings[name], str(FrameKind(kind)), int(counts[i]), one))
    return sorted(rows, key=lambda kernel: (-kernel.gpu_time.sum, kernel.name))
