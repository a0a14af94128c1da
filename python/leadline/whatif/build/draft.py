"""The graph while it is being built: growing columns of tasks and edges in trace time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.tables import Trace
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS
from leadline.whatif.kinds import EdgeType, IntArray, Lane

_FREE = np.iinfo(np.int64).min  # a task that may start as soon as what it depends on lets it
_DEFAULTS: dict[str, Any] = {
    "start_ns": 0, "duration_ns": 0, "measured_ns": 0, "gap_ns": 0, "gap_level": 1, "earliest_ns": 0, "operator": 0,
    "parent": -1, "layer": 0, "phase": 0, "step": -1, "bytes": 0, "priority": 0.0, "group": -1, "detail": -1,
    "beside": False, "alive": True, "row": -1, "end_ns": 0, "tie": 0.0, "order": 0.0, "not_before_ns": _FREE,
}  # fmt: skip
# event row, measured end, order among equal starts, and `earliest_ns` as a time of the trace
_EXTRA = {"row": "i8", "end_ns": "i8", "tie": "f8", "not_before_ns": "i8"}


class Draft:
    """Tasks of one rank and window, in times of the trace. `has_steps`: the window ends where a step does."""

    def __init__(self, trace: Trace, window_ns: tuple[int, int], *, has_steps: bool = True) -> None:
        self.trace = trace
        self.window_ns = window_ns
        self.has_steps = has_steps
        self.lanes: list[Lane] = []
        self.lane_of_thread: dict[int, int] = {}
        self.lane_of_stream: dict[tuple[int, int], int] = {}
        self.names: dict[str, int] = {"": 0}
        self.layers: dict[str, int] = {"": 0}
        self.warnings: list[str] = []
        self.unexplained_ns = 0
        self.carried: IntArray = np.zeros(0, dtype=np.int64)  # device work that was launched before the window
        self.facts: dict[str, Any] = {}
        self.passed_on: dict[int, list[Any]] = {}  # stream waits of streams without work, by stream (build/waits.py)
        self.record_marks: dict[tuple[int, int], int] = {}  # (call that recorded an event, lane) to the task for it
        # with room behind the rows that count
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(0, dtype=dtype) for name, dtype in {**TASK_COLUMNS, **_EXTRA}.items()
        }
        self._rows = 0
        self._views = dict(self._columns)  # of the rows that count
        self._edges: list[tuple[int, int, int, int]] = []
        self._bulk_edges: list[NDArray[np.int64]] = []
        self.waits: list[tuple[int, int]] = []
        self._name_map: IntArray | None = None

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A task column that may be written, until tasks are added."""
        return self._views[name]

    def add(self, count: int, **values: Any) -> IntArray:
        """Append tasks; columns not named get their default. Returns the new ids."""
        first, end = self._rows, self._rows + count
        if end > self._columns["kind"].size:
            for name, column in self._columns.items():
                self._columns[name] = np.empty(max(end, first + first // 2), dtype=column.dtype)
                self._columns[name][:first] = column[:first]
        for name, column in self._columns.items():
            column[first:end] = values[name] if name in values else _DEFAULTS[name]
        self._rows = end
        self._views = {name: column[:end] for name, column in self._columns.items()}
        return np.arange(first, end)

    def name_id(self, name: str) -> int:
        """Row of a name in the graph."""
        return self.names.setdefault(name, len(self.names))

    def layer_id(self, layer: str) -> int:
        """Row of a layer in the graph."""
        return self.layers.setdefault(layer, len(self.layers))

    def trace_names(self, rows: IntArray) -> IntArray:
        """Graph name ids of the trace's string rows."""
        if self._name_map is None:
            self._name_map = np.array([self.name_id(text) for text in self.trace.strings], dtype=np.int64)
        mapped: IntArray = self._name_map[rows]
        return mapped

    def edge(self, source: int, target: int, edge_type: EdgeType, latency_ns: int = 0) -> None:
        """Add an edge."""
        self._edges.append((source, target, int(edge_type), latency_ns))

    def edges(self, sources: IntArray, targets: IntArray, edge_type: EdgeType, latency_ns: IntArray) -> None:
        """Add many edges."""
        kind = np.full(sources.size, int(edge_type), dtype=np.int64)
        self._bulk_edges.append(np.stack((sources, targets, kind, latency_ns), axis=1))

    def sort_key(self) -> IntArray:
        """Task ids in time order: by start, then by the order in which the timelines were laid out."""
        return np.lexsort((self["tie"], self["start_ns"]))

    def tables(self, origin_ns: int, drift: float = 0.0) -> tuple[ColumnTable, ColumnTable, ColumnTable]:
        """Tasks, edges and waits, with times relative to `origin_ns`: the window's start, or the earliest one of all
        ranks on this rank's clock, which gains `drift` on theirs from there for every nanosecond."""
        columns = {name: self[name] for name in TASK_COLUMNS}
        columns["order"] = np.empty(len(self), dtype=np.float64)
        columns["order"][self.sort_key()] = np.arange(len(self))
        columns["start_ns"] = _without_drift(columns["start_ns"] - origin_ns, drift)
        bound = self["not_before_ns"]
        columns["earliest_ns"] = np.where(
            bound == _FREE, 0, _without_drift(np.maximum(bound, origin_ns) - origin_ns, drift)
        )
        single = np.array(self._edges, dtype=np.int64).reshape(len(self._edges), 4)
        rows = np.concatenate([single, *self._bulk_edges])
        edges = {name: rows[:, at].astype(dtype) for at, (name, dtype) in enumerate(EDGE_COLUMNS.items())}
        pairs = np.array(self.waits, dtype=np.int64).reshape(len(self.waits), 2)
        waits = {name: pairs[:, at].astype(dtype) for at, (name, dtype) in enumerate(WAIT_COLUMNS.items())}
        return ColumnTable(columns), ColumnTable(edges), ColumnTable(waits)


def _without_drift(times_ns: IntArray, drift: float) -> IntArray:
    """Moments of a clock that gains `drift` on another, on the other; both show 0 at once."""
    return times_ns - np.rint(times_ns * (drift / (1 + drift))).astype(np.int64) if drift else times_ns
