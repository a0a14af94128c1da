"""Builds a graph task by task; for tests, for generated job graphs and for small models of a system.

Readers of large traces fill the columns directly (build.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS, Graph, GraphInfo
from leadline.whatif.kinds import DEFAULT_DISCIPLINE, Discipline, EdgeType, Lane, LaneKind, Phase, TaskKind


class GraphBuilder:
    """Collects lanes, tasks and edges; tasks of a lane follow one another in the order of the calls."""

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        self._names: dict[str, int] = {"": 0}
        self._layers: dict[str, int] = {"": 0}
        self._tasks: list[dict[str, Any]] = []
        self._edges: list[tuple[int, int, int, int]] = []
        self._waits: list[tuple[int, int]] = []

    def lane(
        self, name: str, kind: LaneKind, *, rank: int = 0, device: int = -1, discipline: Discipline | None = None
    ) -> int:
        """Add a lane; returns its id."""
        chosen = DEFAULT_DISCIPLINE[kind] if discipline is None else discipline
        self._lanes.append(Lane(name, kind, chosen, rank, device))
        return len(self._lanes) - 1

    def task(
        self,
        name: str,
        kind: TaskKind,
        lane: int,
        duration_ns: int,
        *,
        gap_ns: int = 0,
        earliest_ns: int = 0,
        operator: str = "",
        parent: int = -1,
        layer: str = "",
        phase: Phase = Phase.OTHER,
        step: int = 0,
        bytes: int = 0,
        priority: float = 0.0,
        group: int = -1,
        launch: int | None = None,
        latency_ns: int = 0,
    ) -> int:
        """Add a task behind the others of its lane; `launch` adds the launch edge. Returns its id."""
        row = len(self._tasks)
        self._tasks.append(
            {
                "kind": int(kind), "lane": lane, "duration_ns": duration_ns, "gap_ns": gap_ns, "gap_level": 1,
                "earliest_ns": earliest_ns, "start_ns": -1, "measured_ns": duration_ns, "order": float(row),
                "name": self._names.setdefault(name, len(self._names)),
                "operator": self._names.setdefault(operator, len(self._names)),
                "parent": parent if launch is None else launch,
                "layer": self._layers.setdefault(layer, len(self._layers)), "phase": int(phase), "step": step,
                "bytes": bytes, "priority": priority, "group": group, "detail": -1, "beside": False,
                "alive": True,
            }
        )  # fmt: skip
        if launch is not None:
            self.edge(launch, row, EdgeType.LAUNCH, latency_ns)
        return row

    def edge(self, source: int, target: int, edge_type: EdgeType, latency_ns: int = 0) -> None:
        """Add an edge."""
        self._edges.append((source, target, int(edge_type), latency_ns))

    def wait(self, task: int, lane: int) -> None:
        """Make a CPU task a synchronisation with everything issued to `lane` when the task is reached."""
        self._waits.append((task, lane))

    def graph(self, info: GraphInfo | None = None) -> Graph:
        """The graph collected so far."""
        steps = tuple(sorted({row["step"] for row in self._tasks}))
        tasks = {
            name: np.array([row[name] for row in self._tasks], dtype=dtype) for name, dtype in TASK_COLUMNS.items()
        }
        return Graph(
            ColumnTable(tasks),
            ColumnTable(_columns(self._edges, EDGE_COLUMNS)),
            ColumnTable(_columns(self._waits, WAIT_COLUMNS)),
            self._lanes,
            list(self._names),
            list(self._layers),
            info=info or GraphInfo(steps=steps),
        )


def _columns(rows: list[Any], columns: Any) -> dict[str, Any]:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(columns))
    return {name: table[:, at].astype(dtype) for at, (name, dtype) in enumerate(columns.items())}
