"""The calling context tree of a profile: light views of nodes over NumPy columns, and roll-ups computed once per
metric.

A `Node` is two words (tree, row); make and drop them freely. For whole-tree work use the arrays: `Tree.parent`,
`Tree.frame_of`, `Tree.frames`, `Tree.exclusive` and `Tree.inclusive`, which all have one row per node (or per frame)
and do not copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.measures import Measures, Stat, exclusive_measures
from leadline.profiles.peaks import (
    OF_A_MOMENT,
    apart,
    at_one_moment,
    exclusive_at_peaks,
    inclusive_at_peaks,
)
from leadline.profiles.rollup import Shape, inclusive_measures
from leadline.profiles.tables import Array, Columns, Tables
from leadline.schema import FrameKind, MetricInfo, MetricKind, metric_info

if TYPE_CHECKING:
    from leadline.profiles.bottom_up import BottomUp

PRUNED_KIND = 255
"""Of nodes that stand for several call paths: no frame kind of a run."""
_Key = tuple[MetricKind, int | None, int | None]


def metric_kind(metric: str | MetricKind) -> MetricKind:
    """The metric of that name; raises ValueError with a sentence when there is none."""
    if isinstance(metric, MetricKind):
        return metric
    try:
        return MetricKind.of(metric)
    except KeyError:
        known = ", ".join(str(kind) for kind in MetricKind)
        raise ValueError(f"There is no metric called {metric!r}; the metrics are {known}.") from None


def present_name(metric: str) -> str:
    """The name a metric has now, for one that was renamed (`cpu_time` is `time`); any other text is returned as it
    is."""
    try:
        return str(MetricKind[metric.upper()])
    except KeyError:
        return metric


def frame_kind(kind: str | FrameKind) -> FrameKind:
    """The frame kind of that name; raises ValueError with a sentence when there is none."""
    if isinstance(kind, FrameKind):
        return kind
    try:
        return FrameKind.of(kind)
    except KeyError:
        known = ", ".join(str(one) for one in FrameKind)
        raise ValueError(f"There is no frame kind called {kind!r}; the kinds are {known}.") from None


class Node:
    """One call path of the tree, seen at its leaf. Two views of the same row of the same tree are equal."""

    __slots__ = ("row", "tree")

    def __init__(self, tree: Tree, row: int) -> None:
        self.tree = tree
        self.row = row

    @property
    def frame(self) -> int:
        """Row of its frame in the `frames` table."""
        return int(self.tree.frame_of[self.row])

    @property
    def kind(self) -> str:
        """Frame kind as in the schema: "python", "module", "operator", "kernel", ..."""
        return str(FrameKind(self.tree.frames["kind"][self.frame]))

    @property
    def name(self) -> str:
        return self.tree.text("name", self.frame)

    @property
    def file(self) -> str:
        return self.tree.text("file", self.frame)

    @property
    def line(self) -> int:
        """Line being executed; 0 where unknown."""
        return int(self.tree.frames["line"][self.frame])

    @property
    def first_line(self) -> int:
        """First line of the function; 0 where unknown."""
        return int(self.tree.frames["first_line"][self.frame])

    @property
    def module(self) -> str:
        """Class of an nn.Module frame, build id of a native frame, else empty."""
        return self.tree.text("module", self.frame)

    @property
    def address(self) -> int:
        return int(self.tree.frames["address"][self.frame])

    @property
    def detail(self) -> dict[str, Any]:
        """What only this kind of frame has; empty where there is nothing or what is there is not a JSON object."""
        return json_object(self.tree.text("detail", self.frame))

    @property
    def parent(self) -> Node | None:
        row = int(self.tree.parent[self.row])
        return None if row < 0 else Node(self.tree, row)

    @property
    def children(self) -> list[Node]:
        return [Node(self.tree, row) for row in self.tree.shape.children(self.row).tolist()]

    def path(self) -> list[Node]:
        """From the root to this node, both included."""
        return [Node(self.tree, row) for row in self.tree.path_rows(self.row)]

    def nearest(self, kind: str | FrameKind) -> Node | None:
        """The innermost node of that frame kind on the path to here, itself included: its phase, its module, its
        thread."""
        wanted = int(frame_kind(kind))
        row = self.row
        while row >= 0 and self.tree.kinds[row] != wanted:
            row = int(self.tree.parent[row])
        return Node(self.tree, row) if row >= 0 else None

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, depth first, parents before children."""
        return self.tree.walk(self.row)

    def exclusive(self, metric: str | MetricKind, device: int | None = None, stream: int | None = None) -> Stat:
        """What was measured at this very node. `device`, `stream`: only that row of devices or that stream; -1 is the
        CPU."""
        return self.tree.exclusive(metric, device, stream).stat(self.row)

    def inclusive(self, metric: str | MetricKind, device: int | None = None, stream: int | None = None) -> Stat:
        """What was measured here and below. Raises ValueError for a metric that is not additive."""
        return self.tree.inclusive(metric, device, stream).stat(self.row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.row == self.row and other.tree is self.tree

    def __hash__(self) -> int:
        return hash((id(self.tree), self.row))

    def __repr__(self) -> str:
        where = f" {self.file}:{self.line}" if self.file else ""
        return f"<Node {self.row} {self.kind} {self.name}{where}>"


_MOST_DEVICES = 8
"""Columns of single devices that are kept; each has a row for every node."""


class Tree:
    """All nodes of a profile. Row 0 is the root."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.parent: Array = tables["nodes"]["parent"]
        self.frame_of: Array = tables["nodes"]["frame"]
        self.frames: Columns = tables["frames"]
        self.shape = Shape(self.parent)
        self._exclusive: dict[_Key, Measures] = {}
        self._inclusive: dict[_Key, Measures] = {}

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def root(self) -> Node:
        return Node(self, 0)

    def node(self, row: int) -> Node:
        """The node of that row; raises IndexError outside 0..len-1."""
        if not 0 <= row < len(self):
            raise IndexError(f"This tree has no node {row}; its nodes are 0 to {len(self) - 1}.")
        return Node(self, row)

    def text(self, column: str, frame: int) -> str:
        """A text column (`name`, `file`, `module`, `detail`) of a frame."""
        return self.tables.strings[int(self.frames[column][frame])]

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Frame kind of every node."""
        kinds: NDArray[np.uint8] = self.frames["kind"][self.frame_of]
        return kinds

    @cached_property
    def measured(self) -> tuple[MetricInfo, ...]:
        """Metrics with at least one measurement, in the order of the schema; those of newer releases come last."""
        metrics = self.tables["metrics"]
        present = np.unique(metrics["metric"][metrics["count"] > 0]).tolist()
        return tuple(metric_info(MetricKind(number)) for number in present)

    def path_rows(self, row: int) -> list[int]:
        """Rows from the root to `row`."""
        rows = [row]
        while (row := int(self.parent[row])) >= 0:
            rows.append(row)
        return rows[::-1]

    def walk(self, row: int = 0) -> Iterator[Node]:
        """Nodes from `row` down, depth first, parents before children, children in row order."""
        stack = [row]
        while stack:
            row = stack.pop()
            yield Node(self, row)
            stack.extend(self.shape.children(row)[::-1].tolist())

    def exclusive(self, metric: str | MetricKind, device: int | None = None, stream: int | None = None) -> Measures:
        """Accumulators of every node, exclusive; gathered once per (metric, device, stream) and kept. `peak_live_bytes`
        without a device is that of the device with most, since devices peak at different moments."""
        key = (metric_kind(metric), device, stream)
        if key not in self._exclusive:
            if key[0] in OF_A_MOMENT and device is None:
                found = exclusive_at_peaks(self._apart(key[0], stream), len(self))
            else:
                found = exclusive_measures(self.tables["metrics"], len(self), *key)
            if device is not None:  # of hundreds of ranks nobody asks twice
                of_devices = [one for one in self._exclusive if one[1] is not None]
                if len(of_devices) >= _MOST_DEVICES:
                    del self._exclusive[of_devices[0]]
            self._exclusive[key] = found
        return self._exclusive[key]

    def inclusive(self, metric: str | MetricKind, device: int | None = None, stream: int | None = None) -> Measures:
        """Accumulators of every node with its subtree; rolled up once and kept. Raises ValueError when not additive.

        `peak_live_bytes` is added up within a process and on a device only: without a device it is that of the device
        with most, and above the processes (the root) that of the process with most."""
        key = (metric_kind(metric), device, stream)
        if not metric_info(key[0]).additive:
            raise ValueError(
                f"{key[0]} is not additive, so its sum over a subtree would mean nothing; "
                f"use exclusive({str(key[0])!r}) instead."
            )
        if key not in self._inclusive:
            if key[0] in OF_A_MOMENT:
                separate = self._apart(key[0], stream) if device is None else [self.exclusive(*key)]
                self._inclusive[key] = inclusive_at_peaks(self.shape, self.kinds, separate)
            else:
                self._inclusive[key] = inclusive_measures(self.shape, self.exclusive(*key))
        return self._inclusive[key]

    def drawn(self, metric: str | MetricKind) -> NDArray[np.int64]:
        """Exclusive sums whose total is one figure, for pictures whose boxes are as wide as what is in them: of
        `peak_live_bytes` the largest peak of one process on one device."""
        kind = metric_kind(metric)
        if kind not in OF_A_MOMENT:
            return self.exclusive(kind).sum
        return at_one_moment(self.shape, self.kinds, self._apart(kind, None))

    def _apart(self, kind: MetricKind, stream: int | None) -> list[Measures]:
        return apart(self.tables["metrics"], self.shape, self.kinds, kind, stream)

    def frame_rows(
        self, kind: str | FrameKind | None = None, name: str | None = None, pattern: str | re.Pattern[str] | None = None
    ) -> NDArray[np.bool_]:
        """Which frames are meant: a mask over the `frames` table. See `find`."""
        mask = np.ones(len(self.frames["kind"]), np.bool_)
        if kind is not None:
            mask &= self.frames["kind"] == int(frame_kind(kind))
        if name is not None:
            mask &= np.isin(self.frames["name"], self.tables.strings.rows_equal(name))
        if pattern is not None:
            compiled = re.compile(pattern)
            ids = np.unique(self.frames["name"][mask])
            found = [row for row in ids.tolist() if compiled.search(self.tables.strings[row])]
            mask &= np.isin(self.frames["name"], np.array(found, np.int64))
        return mask

    def find(
        self,
        kind: str | FrameKind | None = None,
        name: str | None = None,
        pattern: str | re.Pattern[str] | None = None,
    ) -> list[Node]:
        """Nodes in row order of that frame kind, of exactly that name, and whose name the regular expression matches
        somewhere."""
        rows = np.flatnonzero(self.frame_rows(kind, name, pattern)[self.frame_of])
        return [Node(self, row) for row in rows.tolist()]

    def hottest(self, metric: str | MetricKind = "time", top: int = 10) -> list[Node]:
        """The nodes with the largest exclusive sums, the largest first; none without a measurement; ties in row
        order."""
        measures = self.exclusive(metric)
        rows = np.flatnonzero(measures.count)
        order = np.argsort(-measures.sum[rows], kind="stable")[:top]
        return [Node(self, row) for row in rows[order].tolist()]

    def bottom_up(self, metric: str | MetricKind = "time", kind: str | FrameKind | None = None) -> BottomUp:
        """The tree turned over: frames that spent the metric themselves, and below each its callers. `kind`: only such
        frames."""
        from leadline.profiles.bottom_up import BottomUp  # that module needs this one's names

        return BottomUp.of(self, metric_kind(metric), None if kind is None else frame_kind(kind))


def json_object(text: str) -> dict[str, Any]:
    """A JSON object from a `detail` column; empty when it is not one, since a file from someone else is data."""
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def process_detail(pid: int, start_ns: int, known: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The `detail` of a process frame: it keeps processes with equal command lines apart when trees are merged."""
    return json.dumps({**known, "pid": pid, "start_ns": start_ns}, sort_keys=True, separators=(",", ":"))
