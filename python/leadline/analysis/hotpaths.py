"""The hottest call paths: measurements grouped under the user's line, the phase, the module and the outermost operator.

A transformer has the same path once per layer; modules that differ only in layer numbers are one group
(`transformer.h.*.attn`), or a list would show one line twelve times. Grouping is done with whole columns; only the
entries that are asked for become objects, and they name nodes: words are the reader's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, at_rows, factorized
from leadline.analysis.layers import merged_layers
from leadline.analysis.scopes import Scopes
from leadline.profiles import Tree
from leadline.schema import FrameKind

_FUNCTIONS = (int(FrameKind.PYTHON), int(FrameKind.NATIVE))
_LOOKED_AT = 500
"""Paths of an entry, those with most of it first, among which the function is looked for that they share."""


@dataclass(frozen=True)
class Entry:
    """`row`: the node with the largest value, which stands for the group. `common`: the innermost function on its path
    in or below which at least half of the group is; the user's line where none is. `modules`: one node of each distinct
    module name. `calls`: of the outermost operators. `paths`: distinct call paths merged. `values`: metric to exclusive
    sum. `callers`: distinct lines that call the function of the user's line, of the first of very many paths."""

    row: int
    common: int
    modules: tuple[int, ...]
    calls: int
    paths: int
    values: dict[str, int]
    callers: int = 1


@dataclass(frozen=True)
class Ranking:
    """The largest entries, and how many there are in all."""

    entries: tuple[Entry, ...]
    of: int


class HotPaths:
    """Ranks the paths of one tree. `group`: for every node a number that it shares with the nodes of the same line,
    module pattern, phase and operator."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self._tree = tree
        self._scopes = scopes
        self.group = _groups(tree, scopes)

    def ranked(self, metric: str, top: int, kept: Mask, also: Iterable[str] = (), device: int | None = None) -> Ranking:
        """The `top` entries with most of `metric` over the nodes `kept`. `also`: further additive metrics to sum over
        each entry. Raises ValueError for a metric that does not exist."""
        sums = self._tree.exclusive(metric, device).sum
        rows = np.flatnonzero((sums > 0) & kept)
        if not len(rows):
            return Ranking((), 0)
        rows = rows[np.argsort(self.group[rows], kind="stable")]
        groups, first = np.unique(self.group[rows], return_index=True)
        totals = np.add.reduceat(sums[rows], first)
        bounds = [*first.tolist(), len(rows)]
        order = np.lexsort((rows[first], -totals))[:top].tolist()
        values = {metric: dict(zip(groups.tolist(), totals.tolist(), strict=True))}
        wanted = groups[order]
        for other in also:
            values.setdefault(other, self._sums(other, device, wanted, kept))
        entries = (self._entry(rows[bounds[i] : bounds[i + 1]], sums, _of_group(values, int(groups[i]))) for i in order)
        return Ranking(tuple(entries), len(groups))

    def _sums(self, metric: str, device: int | None, groups: Rows, kept: Mask) -> dict[int, int]:
        """Sums of `metric` by group, for these groups."""
        sums = self._tree.exclusive(metric, device).sum
        rows = np.flatnonzero((sums != 0) & kept)
        rows = rows[np.isin(self.group[rows], groups)]
        found, where = np.unique(self.group[rows], return_inverse=True)
        totals = np.zeros(len(found), np.int64)
        np.add.at(totals, where, sums[rows])
        return dict(zip(found.tolist(), totals.tolist(), strict=True))

    def _entry(self, rows: Rows, sums: Rows, values: dict[str, int]) -> Entry:
        outer = np.unique(self._scopes.outer[rows])
        modules = np.unique(self._scopes.module[rows])
        modules = modules[modules >= 0]
        names = self._tree.frames["name"][self._tree.frame_of[modules]]
        one_of_each = modules[np.unique(names, return_index=True)[1]]
        calls = self._tree.exclusive("call_time").count[outer[outer >= 0]]
        row = int(rows[np.argmax(sums[rows])])
        common = self._common(row, rows, sums)
        return Entry(row, common, tuple(one_of_each.tolist()), int(calls.sum()), len(rows), values, self._callers(rows))

    def _callers(self, rows: Rows) -> int:
        tree = self._tree
        lines = set()
        for row in np.unique(self._scopes.user[rows])[:_LOOKED_AT].tolist():
            row = int(tree.parent[row]) if row >= 0 else -1
            while row > 0 and tree.kinds[row] != int(FrameKind.PYTHON):
                row = int(tree.parent[row])
            if row > 0:
                frame = int(tree.frame_of[row])
                lines.add(tuple(int(tree.frames[column][frame]) for column in ("file", "line", "name")))
        return max(len(lines), 1)

    def _common(self, row: int, rows: Rows, sums: Rows) -> int:
        held: dict[int, int] = {}
        for one in rows[np.argsort(-sums[rows], kind="stable")][:_LOOKED_AT].tolist():
            for name in {self._name(at) for at in functions_below_line(self._tree, self._scopes, one)}:
                held[name] = held.get(name, 0) + int(sums[one])
        half = int(sums[rows].sum()) / 2
        for at in functions_below_line(self._tree, self._scopes, row):
            if held[self._name(at)] >= half:
                return at
        return max(int(self._scopes.user[row]), 0) if self._tree.kinds[row] in _FUNCTIONS else row

    def _name(self, row: int) -> int:
        return int(self._tree.frames["name"][self._tree.frame_of[row]])


def functions_below_line(tree: Tree, scopes: Scopes, row: int) -> Iterator[int]:
    """The Python and native functions from this node up to, but without, the user's line; none where the node is no
    function."""
    user = int(scopes.user[row])
    while row > 0 and row != user and tree.kinds[row] in _FUNCTIONS:
        yield row
        row = int(tree.parent[row])


def _of_group(values: dict[str, dict[int, int]], group: int) -> dict[str, int]:
    return {metric: sums[group] for metric, sums in values.items() if group in sums}


def _groups(tree: Tree, scopes: Scopes) -> Rows:
    columns = tree.frames
    lines = factorized(columns["file"].astype(np.int64), columns["line"], columns["name"])
    names = columns["name"].astype(np.int64)
    patterns = names.copy()
    numbers: dict[str, int] = {}
    for frame in np.flatnonzero(columns["kind"] == int(FrameKind.MODULE)).tolist():
        patterns[frame] = numbers.setdefault(merged_layers(tree.text("name", frame)), len(numbers))
    by_frame = ((scopes.user, lines), (scopes.module, patterns), (scopes.phase, names), (scopes.outer, names))
    return factorized(*(at_rows(column[tree.frame_of], rows) for rows, column in by_frame))
