"""The hottest call paths: measurements grouped under the user's line, the phase, the module and the outermost operator.

A transformer has the same path once per layer; entries whose modules differ only in layer numbers are one entry
(`transformer.h.*.attn`), or the list would show one line twelve times. Grouping is done with whole columns; only the
entries that are shown become objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Tree
from leadline.report.model import FrameLine, HotPath, Place
from leadline.report.scopes import Rows, Scopes
from leadline.report.source import is_library, short_names
from leadline.schema import FrameKind

_LAYER_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def merged_layers(module: str) -> str:
    """`transformer.h.3.attn` as `transformer.h.*.attn`."""
    return _LAYER_NUMBER.sub("*", module)


@dataclass(frozen=True)
class Ranking:
    """The largest entries, and how many there are in all."""

    entries: tuple[HotPath, ...]
    of: int


class HotPaths:
    """Ranks the paths of one tree; files are shown relative to the folder `base` where they lie below it."""

    def __init__(
        self, tree: Tree, scopes: Scopes, kept: NDArray[np.bool_], hide_library_frames: bool, base: str
    ) -> None:
        self._tree = tree
        self._scopes = scopes
        self._kept = kept
        self._hide = hide_library_frames
        strings = tree.tables.strings
        python = tree.frames["kind"] == int(FrameKind.PYTHON)
        self._short = short_names((strings[row] for row in set(tree.frames["file"][python].tolist())), base)
        self._group = _groups(tree, scopes)

    def ranked(self, metric: str, top: int, also: Iterable[str] = (), device: int | None = None) -> Ranking:
        """The `top` entries with most of `metric`. `also`: further additive metrics to sum over each entry."""
        sums = self._tree.exclusive(metric, device).sum
        rows = np.flatnonzero((sums > 0) & self._kept)
        if not len(rows):
            return Ranking((), 0)
        rows = rows[np.argsort(self._group[rows], kind="stable")]
        groups, first = np.unique(self._group[rows], return_index=True)
        totals = np.add.reduceat(sums[rows], first)
        bounds = [*first.tolist(), len(rows)]
        order = np.lexsort((rows[first], -totals))[:top].tolist()
        values = {metric: dict(zip(groups.tolist(), totals.tolist(), strict=True))}
        wanted = groups[order]
        for other in also:
            values.setdefault(other, self._sums(other, device, wanted))
        return Ranking(
            tuple(self._entry(rows[bounds[i] : bounds[i + 1]], sums, _of_group(values, int(groups[i]))) for i in order),
            len(groups),
        )

    def _sums(self, metric: str, device: int | None, groups: Rows) -> dict[int, int]:
        """Sums of `metric` by group, for these groups."""
        sums = self._tree.exclusive(metric, device).sum
        rows = np.flatnonzero((sums != 0) & self._kept)
        rows = rows[np.isin(self._group[rows], groups)]
        found, where = np.unique(self._group[rows], return_inverse=True)
        totals = np.zeros(len(found), np.int64)
        np.add.at(totals, where, sums[rows])
        return dict(zip(found.tolist(), totals.tolist(), strict=True))

    def _entry(self, rows: Rows, sums: NDArray[np.int64], values: dict[str, int]) -> HotPath:
        """One entry from the rows of its group; the row with the largest value stands for it."""
        tree, scopes = self._tree, self._scopes
        row = int(rows[np.argmax(sums[rows])])
        module, outer = int(scopes.module[row]), int(scopes.outer[row])
        module_rows, outer_rows = np.unique(scopes.module[rows]), np.unique(scopes.outer[rows])
        names = sorted({self._name(one) for one in module_rows.tolist() if one >= 0})
        calls = tree.exclusive("call_time").count[outer_rows[outer_rows >= 0]]
        return HotPath(
            place=self.place(row),
            module=merged_layers(names[0]) if len(names) > 1 else next(iter(names), ""),
            module_class=tree.text("module", int(tree.frame_of[module])) if module >= 0 else "",
            modules=len(names),
            phase=self._name(int(scopes.phase[row])),
            operator=self._name(outer),
            calls=int(calls.sum()),
            paths=len(rows),
            values=values,
            frames=self.frames(row),
            node=outer if outer >= 0 else row,
        )

    def _name(self, row: int) -> str:
        return self._tree.text("name", int(self._tree.frame_of[row])) if row >= 0 else ""

    def place(self, row: int) -> Place | None:
        """The user's line of a node, or None where no Python frame is above it."""
        user = int(self._scopes.user[row])
        if user < 0:
            return None
        frame = int(self._tree.frame_of[user])
        file = self._tree.text("file", frame)
        name = self._tree.text("name", frame)
        function = "" if name == "<module>" else name
        return Place(file, self._short[file], int(self._tree.frames["line"][frame]), function)

    def frames(self, row: int) -> tuple[FrameLine, ...]:
        """The path to a node below the root, without library frames where the user asked for that."""
        nodes = (self._tree.node(one) for one in self._tree.path_rows(row)[1:])
        lines = (
            FrameLine(node.kind, node.name, node.file, node.line, self._short.get(node.file, ""), node.module)
            for node in nodes
        )
        return tuple(line for line in lines if not (self._hide and line.kind == "python" and is_library(line.file)))


def _of_group(values: dict[str, dict[int, int]], group: int) -> dict[str, int]:
    return {metric: sums[group] for metric, sums in values.items() if group in sums}


def _groups(tree: Tree, scopes: Scopes) -> Rows:
    """For every node a number that it shares with the nodes of the same line, module pattern, phase and operator."""
    columns = tree.frames
    lines = _factorized(columns["file"].astype(np.int64), columns["line"], columns["name"])
    names = columns["name"].astype(np.int64)
    patterns = names.copy()
    numbers: dict[str, int] = {}
    for frame in np.flatnonzero(columns["kind"] == int(FrameKind.MODULE)).tolist():
        patterns[frame] = numbers.setdefault(merged_layers(tree.text("name", frame)), len(numbers))
    of_node = [
        np.where(rows >= 0, by_frame[tree.frame_of[rows]], -1)  # -1 picks the last node's frame, and is then put right
        for rows, by_frame in (
            (scopes.user, lines),
            (scopes.module, patterns),
            (scopes.phase, names),
            (scopes.outer, names),
        )
    ]
    return _factorized(*of_node)


def _factorized(*columns: NDArray[np.int64]) -> Rows:
    """Equal numbers for equal rows, counted from 0; two columns at a time, so that products stay within 64 bits."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, part = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(distinct) + part, return_inverse=True)[1]
    return numbers
