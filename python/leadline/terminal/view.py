"""Ways to look at the tree: top-down or bottom-up, by any metric, library frames hidden, numbered layers folded.

The same view as the page draws (`ui/model/view.ts`). It is lazy: children are grouped when they are asked for, by
whole-array steps, so a view of any size costs what is opened of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Mask, Rows, distinct, factorized, nearest
from leadline.analysis.layers import merged_layers
from leadline.analysis.origin import is_dispatch, is_library
from leadline.profiles import Profile, Tree
from leadline.report.phrases import name_text, operator_text
from leadline.schema import FrameKind, MetricInfo

_PROGRAM_FOLDER = re.compile(r"^\S*/")
_GROUPING_KINDS = (int(FrameKind.PROCESS), int(FrameKind.THREAD))


@dataclass(frozen=True)
class ViewOptions:
    """What a user switches. `join_processes`: leave out process and thread, so that ranks are drawn as one."""

    metric: str
    inverted: bool = False
    hide_library: bool = False
    fold_layers: bool = False
    join_processes: bool = False

    def flipped(self, name: str) -> ViewOptions:
        """With that switch the other way."""
        change: dict[str, Any] = {name: not getattr(self, name)}
        return replace(self, **change)


def first_options(profile: Profile, metric: str) -> ViewOptions:
    """What a view begins with, as the page does: libraries hidden where there is code of the user's own, layers folded,
    several processes joined."""
    tree = profile.tree
    python = tree.frames["kind"] == int(FrameKind.PYTHON)
    own = bool((python & ~library_frames(tree)).any())
    return ViewOptions(metric, hide_library=own, fold_layers=True, join_processes=len(profile.processes) > 1)


class ViewNode:
    """Call paths drawn as one row. `rows`: nodes whose values count; `at`: where the view looks at them: the same
    top-down, their callers bottom-up. `value`: in the metric's unit."""

    __slots__ = ("at", "children", "depth", "group", "opened", "parent", "rows", "value")

    def __init__(self, parent: ViewNode | None, group: int, rows: Rows, at: Rows, value: int) -> None:
        self.parent = parent
        self.group = group
        self.rows = rows
        self.at = at
        self.value = value
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: list[ViewNode] | None = None
        self.opened = False

    @property
    def row(self) -> int:
        """A node that stands for all of them; the root of the tree where there is none."""
        return int(self.at[0]) if self.parent is not None and len(self.at) else 0


def metrics_of(tree: Tree) -> list[MetricInfo]:
    """Metrics a view can be drawn by: the additive ones that were measured, the one to begin with first."""
    found = [info for info in tree.measured if info.additive and tree.exclusive(info.kind).sum.any()]
    order = {"gpu_time": 0, "time": 1}
    return sorted(found, key=lambda info: order.get(str(info.kind), 2))


class TreeView:
    """One way to look at `tree`."""

    def __init__(self, tree: Tree, options: ViewOptions) -> None:
        self.tree = tree
        self.options = options
        self._own = np.maximum(tree.exclusive(options.metric).sum, 0)
        self._whole = np.maximum(tree.inclusive(options.metric).sum, 0)
        self._group_of: Rows = folded_frames(tree) if options.fold_layers else tree.frame_of.astype(np.int64)
        hidden = _hidden(tree, options)
        hidden[:1] = False
        self._shown_above = nearest(tree.shape, ~hidden)  # the nearest node in sight, itself included
        self.total = int(self._whole[0])
        if options.inverted:
            rows = np.flatnonzero(self._own > 0)
            self.root = ViewNode(None, -1, rows, rows, self.total)
        else:
            first = np.zeros(1, np.int64)
            self.root = ViewNode(None, -1, first, first, self.total)
            above = self._shown_above[np.maximum(tree.shape.parent, 0)]
            above[hidden] = -1  # what is not in sight is nobody's child
            above[:1] = -1
            shown = np.flatnonzero(above >= 0)
            self._children_rows = shown[np.argsort(above[shown], kind="stable")]
            self._offsets = np.zeros(len(tree) + 1, np.int64)
            np.cumsum(np.bincount(above[shown], minlength=len(tree)), out=self._offsets[1:])

    def children(self, node: ViewNode) -> list[ViewNode]:
        """What is below it in the view, the largest first."""
        if node.children is None:
            node.children = self._callers(node) if self.options.inverted else self._callees(node)
        return node.children

    def own(self, node: ViewNode) -> int:
        """What the node spent itself, with the hidden frames below it; bottom-up, what the branch's spender did."""
        if self.options.inverted:
            return node.value
        return node.value - sum(child.value for child in self.children(node))

    def value_of(self, node: ViewNode, metric: str) -> int:
        """Sum of another metric over the same call paths."""
        column = self.tree.exclusive(metric) if self.options.inverted else self.tree.inclusive(metric)
        return int(column.sum[node.rows].sum())

    def label(self, node: ViewNode) -> str:
        """The row's text, on one visible line."""
        if node.parent is None:
            return "all, by what spent it" if self.options.inverted else "all"
        frame = int(self.tree.frame_of[node.row])
        name = self.tree.text("name", frame)
        if self.options.fold_layers and len(np.unique(self.tree.frames["name"][self.tree.frame_of[node.at]])) > 1:
            name = merged_layers(name)
        return frame_label(self.tree, frame, name)

    def find(self, row: int) -> list[ViewNode]:
        """The nodes from the root of the view down to the one that stands for `row`, or for its nearest ancestor in
        sight. Top-down only."""
        wanted = set(self.tree.path_rows(row))
        path = [self.root]
        while True:
            below = (child for child in self.children(path[-1]) if not wanted.isdisjoint(child.rows.tolist()))
            child = next(below, None)
            if child is None:
                return path
            path.append(child)

    def _callees(self, node: ViewNode) -> list[ViewNode]:
        rows = self._below(node.rows)
        rows = rows[self._whole[rows] > 0]
        return self._grouped(node, rows, rows, self._whole[rows])

    def _callers(self, node: ViewNode) -> list[ViewNode]:
        above = node.at if node.parent is None else self.tree.shape.parent[node.at]
        above = self._shown_above[np.maximum(above, 0)]
        real = above > 0  # the root calls nobody
        return self._grouped(node, node.rows[real], above[real], self._own[node.rows[real]])

    def _below(self, rows: Rows) -> Rows:
        begin, end = self._offsets[rows], self._offsets[rows + 1]
        counts = end - begin
        before = np.cumsum(counts) - counts
        return self._children_rows[np.repeat(begin - before, counts) + np.arange(int(counts.sum()))]

    def _grouped(self, parent: ViewNode, rows: Rows, at: Rows, values: Rows) -> list[ViewNode]:
        if not len(rows):
            return []
        group = self._group_of[at]
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.concatenate(([True], np.diff(group[order]) != 0)))
        sums = np.add.reduceat(values[order], first)
        ends = np.append(first[1:], len(order))
        made = []
        for i in np.argsort(-sums, kind="stable").tolist():
            here = order[first[i] : ends[i]]
            made.append(ViewNode(parent, int(group[here[0]]), rows[here], at[here], int(sums[i])))
        return made


def frame_label(tree: Tree, frame: int, name: str | None = None) -> str:
    """With the class of a module, the place of Python code; as the page words it."""
    name = tree.text("name", frame) if name is None else name
    kind = int(tree.frames["kind"][frame])
    if kind == FrameKind.MODULE and (module := tree.text("module", frame)):
        return name_text(f"{name} ({module})")
    if kind == FrameKind.PYTHON and (line := int(tree.frames["line"][frame])) > 0:
        return name_text(f"{name} · {tree.text('file', frame).rpartition('/')[2]}:{line}")
    if kind == FrameKind.PROCESS:
        return name_text(_PROGRAM_FOLDER.sub("", name))
    return name_text(operator_text(name) if kind == FrameKind.OPERATOR else name)


def folded_frames(tree: Tree) -> Rows:
    """For every node the number of its group when layer numbers are folded: h.0, h.1, ... of one class are one."""
    names, of_frame = distinct(tree.frames["name"].astype(np.int64))
    known: dict[str, int] = {}
    texts = (merged_layers(tree.tables.strings[row]) for row in names.tolist())
    folded = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)[of_frame]
    others = (tree.frames[name].astype(np.int64) for name in ("kind", "file", "line", "module"))
    return factorized(folded, *others)[tree.frame_of]


def library_frames(tree: Tree) -> Mask:
    """Which frames are Python code that is not the user's, or native code that only calls other."""

    def those(column: str, kind: FrameKind, is_one: Callable[[str], bool]) -> Mask:
        of_kind: Mask = tree.frames["kind"] == int(kind)
        texts, of_frame = np.unique(tree.frames[column][of_kind], return_inverse=True)
        of_kind[of_kind] = np.array([is_one(tree.tables.strings[row]) for row in texts.tolist()], np.bool_)[of_frame]
        return of_kind

    return those("file", FrameKind.PYTHON, is_library) | those("name", FrameKind.NATIVE, is_dispatch)


def _hidden(tree: Tree, options: ViewOptions) -> NDArray[np.bool_]:
    hidden = np.zeros(len(tree.frames["kind"]), np.bool_)
    if options.hide_library:
        hidden |= library_frames(tree)
    if options.join_processes:
        hidden |= np.isin(tree.frames["kind"], _GROUPING_KINDS)
    return hidden[tree.frame_of]
