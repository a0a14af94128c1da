"""A dependency graph to look at: columns, single tasks, selections. graph.py adds the primitives that edit it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.columns import ColumnTable
from leadline.whatif.kinds import BoolArray, EdgeType, IntArray, Lane, Phase, Selection, Task, TaskKind
from leadline.whatif.tables import GraphInfo

_LARGEST_AXIS = 2**48  # of a tensor's shape; beyond it is damage

Selectable = Selection | BoolArray | IntArray | Iterable[int] | int
_G = TypeVar("_G", bound="GraphReading")
_T = TypeVar("_T")
_REMEMBERED = 4  # answers to one question, of different copies


def shapes_in(detail: Mapping[str, Any]) -> list[Any]:
    """Input shapes among the arguments of an operator: a list per input, of lists for a list of tensors; [] for what is
    no shape."""
    found = detail.get("Input Dims", [])
    return [shape if _is_shape(shape) else [] for shape in found] if isinstance(found, list) else []


def _is_shape(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(0 <= axis < _LARGEST_AXIS if type(axis) is int else _is_shape(axis) for axis in value)


def dtypes_in(detail: Mapping[str, Any]) -> list[str]:
    """Input types among the arguments of an operator."""
    found = detail.get("Input type", detail.get("Input Types", []))
    return [str(item) for item in found] if isinstance(found, list) else []


class GraphReading:
    """Tasks, edges, lanes and what they are called.

    `tasks`, `edges` and `waits` are column tables (see TASK_COLUMNS, EDGE_COLUMNS, WAIT_COLUMNS). A row (task, lane) in
    `waits` makes `task` a synchronisation with everything issued to that lane when the task is reached; which task
    that is, is decided during simulation.
    """

    def __init__(
        self,
        tasks: ColumnTable,
        edges: ColumnTable,
        waits: ColumnTable,
        lanes: Sequence[Lane],
        names: Sequence[str],
        layers: Sequence[str] = ("",),
        details: Sequence[Mapping[str, Any]] = (),
        info: GraphInfo | None = None,
    ) -> None:
        self.tasks = tasks
        self.edges = edges
        self.waits = waits
        self.lanes: list[Lane] = list(lanes)
        self.names: list[str] = list(names)
        self.layers: list[str] = list(layers)
        self.details: Sequence[Mapping[str, Any]] = details
        self.info = info or GraphInfo()
        self._remembered: dict[Callable[..., Any], list[tuple[tuple[int, ...], Any, Any]]] = {}
        self._forget()

    def _forget(self) -> None:
        """Drop what is worked out on demand."""
        self._name_ids: dict[str, int] | None = None
        self._layer_ids: dict[str, int] | None = None
        self._keys: dict[int, list[float]] = {}
        self._keys_stamp: tuple[int, ...] = ()

    def remembered(self: _G, work_out: Callable[[_G], _T], *columns: str) -> _T:
        """`work_out(self)`, shared by all copies whose tasks are the same in these columns; nobody may change it."""
        stamp = self.tasks.stamp(*columns)
        known = self._remembered.setdefault(work_out, [])
        for entry in known:
            if entry[0] == stamp and entry[1] is self.details:
                return cast(_T, entry[2])
        found = work_out(self)
        known.append((stamp, self.details, found))
        del known[:-_REMEMBERED]
        return found

    def __len__(self) -> int:
        return len(self.tasks)

    def column(self, name: str) -> NDArray[Any]:
        """Read-only task column (see TASK_COLUMNS), one value per task id, removed tasks included."""
        return self.tasks[name]

    @property
    def alive(self) -> BoolArray:
        return self.tasks["alive"]

    def task(self, task: int) -> Task:
        """One task as a value."""
        row = self.tasks
        lane = int(row["lane"][task])
        return Task(
            id=task,
            name=self.names[row["name"][task]],
            kind=TaskKind(int(row["kind"][task])),
            lane=lane,
            duration_ns=int(row["duration_ns"][task]),
            gap_ns=int(row["gap_ns"][task]),
            start_ns=int(row["start_ns"][task]),
            layer=self.layers[row["layer"][task]],
            phase=Phase(int(row["phase"][task])),
            step=int(row["step"][task]),
            rank=self.lanes[lane].rank,
            operator=self.names[row["operator"][task]],
            bytes=int(row["bytes"][task]),
        )

    def detail(self, task: int) -> Mapping[str, Any]:
        """Arguments of the trace (grid, Collective name, Input Dims, ...), untouched; empty where it had none."""
        row = int(self.tasks.value("detail", task))
        return self.details[row] if row >= 0 else {}

    def shaped_operators(self) -> IntArray:
        """For every task the innermost operator around it (for device work: around its launch) that has shapes, itself
        included; -1 for none."""
        return self.remembered(GraphReading._shaped_operators, "detail", "parent")

    def _shaped_operators(self) -> IntArray:
        shaped = np.array([*("Input Dims" in detail for detail in self.details), False], dtype=np.bool_)
        has, parent = shaped[self.tasks["detail"]], self.tasks["parent"]
        found = np.arange(len(self), dtype=np.int64)
        while True:
            moving = np.flatnonzero((found >= 0) & ~has[found])
            if not moving.size:
                return found
            found[moving] = parent[found[moving]]

    def operator_detail(self, task: int) -> Mapping[str, Any]:
        """Arguments of the innermost enclosing (for device work: launching) operator that has "Input Dims"."""
        at = task
        while at >= 0:
            found = self.detail(at)
            if "Input Dims" in found:
                return found
            at = int(self.tasks.value("parent", at))
        return {}

    def shapes(self, task: int) -> list[Any]:
        """Input shapes of the operator around the task; [] where the trace has none."""
        return shapes_in(self.operator_detail(task))

    def dtypes(self, task: int) -> list[str]:
        """Input types of the operator around the task; [] where the trace has none."""
        return dtypes_in(self.operator_detail(task))

    def select(
        self,
        predicate: Callable[[Task], bool] | None = None,
        *,
        name: str | re.Pattern[str] | None = None,
        operator: str | re.Pattern[str] | None = None,
        layer: str | re.Pattern[str] | None = None,
        phase: Phase | Iterable[Phase] | None = None,
        kind: TaskKind | Iterable[TaskKind] | None = None,
        lane: int | Iterable[int] | None = None,
        step: int | None = None,
        rank: int | None = None,
    ) -> Selection:
        """Tasks that meet every given condition. Patterns are searched (re.search) in the distinct names only.

        `predicate` is called once per task that meets the other conditions; it is the slow path.
        """
        mask: BoolArray = self.tasks["alive"].copy()
        for column, texts, pattern in (
            ("name", self.names, name),
            ("operator", self.names, operator),
            ("layer", self.layers, layer),
        ):
            if pattern is not None:
                mask &= _matching(texts, pattern)[self.tasks[column]]
        for column, wanted in (("phase", phase), ("kind", kind), ("lane", lane)):
            if wanted is not None:
                values = [int(wanted)] if isinstance(wanted, int) else [int(value) for value in wanted]
                mask &= _any_of(self.tasks[column], values)
        if step is not None:
            mask &= self.tasks["step"] == step
        if rank is not None:
            mask &= self.rank_of_tasks() == rank
        if predicate is not None:
            for task in np.flatnonzero(mask).tolist():
                mask[task] = bool(predicate(self.task(task)))
        return Selection(mask)

    def rank_of_tasks(self) -> IntArray:
        """Rank of every task."""
        ranks = np.array([lane.rank for lane in self.lanes], dtype=np.int64)
        found: IntArray = ranks[self.tasks["lane"]]
        return found

    def subtree(self, selection: Selectable) -> Selection:
        """The tasks, all CPU tasks nested in them, and all device work launched from those."""
        mask = self.ids_of(selection).mask(len(self))
        parent = self.tasks["parent"]
        has_parent = parent >= 0
        while True:
            grown = mask | (has_parent & mask[parent])
            if np.array_equal(grown, mask):
                return Selection(mask & self.tasks["alive"])
            mask = grown

    def launched_by(self, selection: Selectable) -> Selection:
        """Device work whose launch is among the tasks."""
        mask = self.ids_of(selection).mask(len(self))
        chosen = (self.edges["type"] == EdgeType.LAUNCH) & mask[self.edges["src"]]
        return Selection(self.edges["dst"][chosen])

    def launchers_of(self, selection: Selectable) -> Selection:
        """API calls that launched the tasks."""
        mask = self.ids_of(selection).mask(len(self))
        chosen = (self.edges["type"] == EdgeType.LAUNCH) & mask[self.edges["dst"]]
        return Selection(self.edges["src"][chosen])

    def copy(self: _G) -> _G:
        """An independent graph that shares all columns until one side writes them."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.tasks, other.edges, other.waits = self.tasks.copy(), self.edges.copy(), self.waits.copy()
        other.lanes, other.names, other.layers = list(self.lanes), list(self.names), list(self.layers)
        other._forget()
        return other

    def ids_of(self, selection: Selectable) -> Selection:
        """A selection from whatever names tasks: ids, a mask, one id, or a selection."""
        if isinstance(selection, Selection):
            return selection
        if isinstance(selection, int | np.integer):
            return Selection([int(selection)])
        return Selection(selection if isinstance(selection, np.ndarray) else np.array(list(selection), dtype=np.int64))


def _any_of(column: NDArray[Any], values: Sequence[int]) -> BoolArray:
    """Where a column has one of a few values; comparing is quicker than sorting for these."""
    if len(values) > 8:
        return np.isin(column, values)
    found: BoolArray = np.zeros(column.size, dtype=np.bool_)
    for value in values:
        found |= column == value
    return found


def _matching(texts: Sequence[str], pattern: str | re.Pattern[str]) -> BoolArray:
    search = re.compile(pattern).search
    return np.fromiter((search(text) is not None for text in texts), dtype=np.bool_, count=len(texts))
