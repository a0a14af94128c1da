"""Every field that a query may name, as a column with a row per node; each is made when first asked for, and kept.

Where a node has no line of its own (operators, kernels, modules), `file`, `line` and `function` are those of the user's
line it was called from. `module`, `phase`, `thread`, `process` and `rank` are of the nearest such frame on the path,
the node itself included.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis import analysis_of
from leadline.analysis.columns import at_rows, factorized, nearest, preorder, subtree_sums
from leadline.analysis.loop import find_loop
from leadline.analysis.scopes import user_lines, within
from leadline.profiles import Measures, Profile
from leadline.profiles.measures import no_measures
from leadline.profiles.tree import present_name
from leadline.schema import FrameKind, MetricInfo, MetricKind, metric_info

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

NUMBER_FIELDS = ("node", "parent", "depth", "line", "rank", "pid", "device")
STATS = ("sum", "self", "count", "mean", "min", "max", "std", "share", "per_step")
DIMENSIONS = {"ns": ("ns", 1.0), "bytes": ("bytes", 1.0), "1e-3": ("1", 1e-3), "1e-6": ("1", 1e-6)}


@dataclass(frozen=True)
class Texts:
    """A text per row: `codes` are places in `values`; every value is there once, and the first is empty."""

    codes: Rows
    values: list[str]

    def at(self, rows: Rows) -> Texts:
        return Texts(self.codes[rows], self.values)

    def array(self) -> NDArray[np.object_]:
        """The texts themselves."""
        values: NDArray[np.object_] = np.array(self.values, dtype=object)
        return values[self.codes]


class TreeColumns:
    """The columns of one profile's tree."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.tree = profile.tree
        self.analysis = analysis_of(profile)
        self._texts: dict[str, Texts] = {}
        self._numbers: dict[str, Rows] = {}
        self._sums: dict[MetricKind, Rows] = {}

    @cached_property
    def before(self) -> Rows:
        """Place of every node in a walk with parents before children; a node's subtree are `before` to `last`."""
        return self._preorder[0]

    @cached_property
    def last(self) -> Rows:
        """Place of the last node below every node, or its own."""
        return self._preorder[0] + self._preorder[1] - 1

    @cached_property
    def _preorder(self) -> tuple[Rows, Rows]:
        return preorder(self.tree.shape)

    @cached_property
    def steps(self) -> int:
        """Turns of the program's loop, as `leadline analyze` counts them; 0 where nothing repeats."""
        loop = find_loop(self.profile, self.analysis.scopes)
        return 0 if loop is None else loop.steps

    @cached_property
    def calls(self) -> Rows:
        """How often each node was called: its calls, or the kernels, copies and sets that ran."""
        measured = {info.kind for info in self.metrics}
        called = self.tree.exclusive(MetricKind.CALL_TIME).count
        if MetricKind.REPEATED_CALL_TIME not in measured and MetricKind.GPU_TIME not in measured:
            return called
        repeated = self.tree.exclusive(MetricKind.REPEATED_CALL_TIME).count
        calls = called - repeated  # as profiles.repeats, without the other accumulators
        work = self.tree.exclusive(MetricKind.GPU_TIME).count
        return np.where((calls > 0) | (repeated > 0), np.maximum(calls, 0), work)

    @cached_property
    def metrics(self) -> tuple[MetricInfo, ...]:
        """Metrics that this profile measured."""
        return self.tree.measured

    def text(self, name: str) -> Texts:
        """A column of `TEXT_FIELDS`."""
        if name not in self._texts:
            self._texts[name] = self._make_text(name)
        return self._texts[name]

    def number(self, name: str) -> Rows:
        """A column of `NUMBER_FIELDS`; -1 where there is none."""
        if name not in self._numbers:
            self._numbers[name] = self._make_number(name)
        return self._numbers[name]

    def total(self, metric: MetricKind) -> float:
        """The whole of an additive metric, which shares are shares of, in its base unit."""
        return float(self.tree.exclusive(metric).sum.sum())

    def below(self, metric: MetricKind) -> Rows:
        """The sum of an additive metric at every node and below; the other accumulators would cost as much again."""
        if metric not in self._sums:
            self._sums[metric] = subtree_sums(self.tree.shape, self.tree.exclusive(metric).sum)
        return self._sums[metric]

    def on_device(self, device: int) -> Mask:
        """Nodes with a measurement on a device of that number, of any process."""
        rows = np.flatnonzero(self.tree.tables["devices"]["index"] == device)
        table = self.tree.tables["metrics"]
        mask = np.zeros(len(self.tree), np.bool_)
        mask[table["node"][np.isin(table["device"], rows) & (table["count"] > 0)]] = True
        return mask

    @cached_property
    def _where(self) -> Rows:
        """The node whose frame says file and line: itself, else the user's line."""
        own = (self.tree.frames["file"] != 0) & (self.tree.frames["line"] > 0)
        return np.where(own[self.tree.frame_of], np.arange(len(self.tree)), self._user)

    @cached_property
    def _border(self) -> Mask:
        kinds = self.tree.kinds
        border: Mask = (kinds == int(FrameKind.THREAD)) | (kinds == int(FrameKind.PROCESS))
        return border

    @cached_property
    def _user(self) -> Rows:
        return user_lines(self.tree, self._border)

    def _nearest(self, kind: FrameKind) -> Rows:
        """As `analysis.scopes`, of which a query rarely needs all."""
        wanted = self.tree.kinds == int(kind)
        if kind in (FrameKind.THREAD, FrameKind.PROCESS):
            return nearest(self.tree.shape, wanted)
        return within(self.tree, wanted, self._border)

    def _make_text(self, name: str) -> Texts:
        tree = self.tree
        if name == "kind":
            return Texts(tree.kinds.astype(np.int64) + 1, ["", *(str(FrameKind(number)) for number in range(256))])
        if name == "name":
            return self._strings("name", np.arange(len(tree)))
        if name == "file":
            return self._strings("file", self._where)
        if name == "function":
            return self._strings("name", np.where(self._where == np.arange(len(tree)), self._python(), self._user))
        column = "module" if name == "class" else "name"
        return self._strings(column, self._nearest(FrameKind["MODULE" if name == "class" else name.upper()]))

    def _python(self) -> Rows:
        python = self.tree.kinds == int(FrameKind.PYTHON)
        return np.where(python, np.arange(len(self.tree)), self._user)

    def _strings(self, column: str, rows: Rows) -> Texts:
        """A text column of the frames of the nodes `rows`."""
        tree = self.tree
        used, of_frame = np.unique(tree.frames[column], return_inverse=True)
        unique: dict[str, int] = {"": 0}
        texts = (tree.tables.strings[row] for row in used.tolist())
        code = np.array([unique.setdefault(text, len(unique)) for text in texts], np.int64)
        by_frame = np.concatenate((code[of_frame], [0]))  # the last for "none"
        frame = np.where(rows >= 0, tree.frame_of[rows], len(by_frame) - 1)
        return Texts(by_frame[frame], list(unique))

    def _make_number(self, name: str) -> Rows:
        tree = self.tree
        if name == "node":
            return np.arange(len(tree), dtype=np.int64)
        if name == "parent":
            return tree.parent.astype(np.int64)
        if name == "depth":
            return tree.shape.depth.astype(np.int64)
        if name == "line":
            frame = np.where(self._where >= 0, tree.frame_of[np.maximum(self._where, 0)].astype(np.int64), -1)
            return at_rows(tree.frames["line"], frame, 0)
        if name == "device":
            return self._devices()
        table = tree.tables["processes"]
        row_of_node = np.full(len(tree), -1, np.int64)
        row_of_node[table["node"]] = np.arange(len(table["node"]))
        return at_rows(table[name], at_rows(row_of_node, self._nearest(FrameKind.PROCESS)))

    def _devices(self) -> Rows:
        """The device's number in its process; -1 for the CPU alone, -2 for several."""
        table = self.tree.tables["metrics"]
        there = (table["device"] >= 0) & (table["count"] > 0)
        index = self.tree.tables["devices"]["index"].astype(np.int64)
        lowest = np.full(len(self.tree), np.iinfo(np.int64).max)
        highest = np.full(len(self.tree), -1, np.int64)
        device = index[table["device"][there]]
        np.minimum.at(lowest, table["node"][there], device)
        np.maximum.at(highest, table["node"][there], device)
        return np.where(highest < 0, -1, np.where(lowest == highest, highest, -2))


def find_metric(name: str) -> MetricInfo | None:
    """The metric of that name, also by the name it had before; None where there is none."""
    try:
        return metric_info(MetricKind.of(present_name(name)))
    except KeyError:
        return None


def dimension(info: MetricInfo) -> tuple[str, float]:
    """(`ns`, `bytes` or `1`, what one of the metric's unit is in it)."""
    return DIMENSIONS.get(info.unit, ("1", 1.0))


_USED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sum", "self", "per_step", "share"), ("sum",)),
    "count": ("count",),
    "mean": ("count", "sum"),
    "min": ("count", "min"),
    "max": ("count", "max"),
}


def grouped_measures(own: Measures, rows: Rows, first: Rows, number: int, stat: str) -> Measures:
    """The measurements at nodes `rows`, which stand group by group and begin at `first`, as one set per group
    0..number-1; of its columns only what the statistic needs is more than empty."""
    result = no_measures(number)
    if not len(first):
        return result
    for name in _USED.get(stat, ("count", "sum", "sum_squares")):
        ufunc = {"min": np.minimum, "max": np.maximum}.get(name, np.add)
        getattr(result, name)[:] = ufunc.reduceat(getattr(own, name)[rows], first)
    return result


def numbered(columns: list[Rows]) -> Rows:
    """Equal numbers, from 0, for rows that are equal in every column."""
    return factorized(*columns)
