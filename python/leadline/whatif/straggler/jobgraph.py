"""The dependency graph of a job's operations: an ordinary graph, which every question can be asked of.

An operation of a worker in a step is a task, its stream a lane, and what it waits for edges; the delay between the end
of what it waits for and its start is the latency of those edges. The operations of a rendezvous are one group. Steps
do not overlap: a mark of no length begins each one when all of the one before has ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Discipline, EdgeType, IntArray, Lane, LaneKind, Phase, TaskKind
from leadline.whatif.simulator import Result, simulate
from leadline.whatif.tables import EDGE_COLUMNS, OPERATIONS, TASK_COLUMNS, WAIT_COLUMNS, GraphInfo

from . import operations as ops
from .operations import FloatArray, OperationTrace
from .pipeline import PipelineModel, build, launch_delay_ns, transfer_ns

_PHASES = {ops.FORWARD: Phase.FORWARD, ops.BACKWARD: Phase.BACKWARD, ops.CLIP: Phase.OPTIMIZER}
_PHASES[ops.OPTIMIZER] = Phase.OPTIMIZER
BEGIN = "step begin"


@dataclass(frozen=True)
class JobGraph:
    """A job's graph, and its tasks: `ids` has shape (operations, steps, dp ranks), as all times of the trace have."""

    graph: Graph
    ids: IntArray

    def step_ns(self, work_ns: FloatArray, *, delays: bool = False) -> FloatArray:
        """Time of every step when its operations do `work_ns`; with `delays` they start as late as measured."""
        return self._run(work_ns, delays).per_step_ns.astype(np.float64)

    def times(self, work_ns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Start and end of every operation without delays, relative to its step."""
        result = self._run(work_ns, delays=False)
        begin = (np.cumsum(result.per_step_ns) - result.per_step_ns)[None, :, None]
        start, end = result.start_ns[self.ids] - begin, result.end_ns[self.ids] - begin
        return start.astype(np.float64), end.astype(np.float64)

    def _run(self, work_ns: FloatArray, delays: bool) -> Result:
        graph = self.graph.copy()
        graph.set_duration(self.ids.ravel(), _whole(work_ns).ravel())
        if not delays:
            graph.scale_latency(EdgeType.DEPENDENCY, 0.0)
        return simulate(graph)


def job_graph(trace: OperationTrace, model: PipelineModel | None = None, source: str = "") -> JobGraph:
    """The graph of every step of a job, with transfers as the work of communication operations. Raises
    StragglerInputError where operations contradict one another."""
    model = model or build(trace)
    count, steps, ranks = trace.start_ns.shape
    ids = np.arange(count * steps * ranks, dtype=np.int64).reshape(count, steps, ranks)
    marks = ids.size + np.arange(steps, dtype=np.int64)
    lanes, lane_of = _lanes(trace)
    names = ["", BEGIN, *sorted({op.kind for op in trace.operations})]
    name_of = np.array([names.index(op.kind) for op in trace.operations])
    communicates = np.array([op.kind in ops.COMMUNICATION for op in trace.operations])
    kind_of = np.where(communicates, int(TaskKind.COMM), int(TaskKind.GPU))
    phase_of = np.array([int(_PHASES.get(op.kind, Phase.OTHER)) for op in trace.operations])
    begin = np.concatenate(([0.0], np.cumsum(trace.step_time_ns)))[:-1]
    step_of = np.broadcast_to(np.array(trace.steps)[None, :, None], ids.shape)
    # operations of one stream wait for one another, so an order in which all can be simulated is that of the stream
    place = np.empty(count)
    place[[i for unit in model.order for i in unit]] = np.arange(count)

    def each(values: NDArray[Any]) -> NDArray[Any]:
        spread: NDArray[Any] = np.broadcast_to(values[:, None, None], ids.shape).ravel()
        return spread

    def column(operations: Any, mark: Any, dtype: str) -> NDArray[Any]:
        return np.concatenate((np.asarray(operations).ravel(), np.broadcast_to(mark, steps))).astype(dtype)

    row = np.arange(steps)
    each_step = np.broadcast_to(row[None, :, None], ids.shape).ravel()
    values: dict[str, tuple[Any, Any]] = {
        "kind": (each(kind_of), int(TaskKind.CPU)),
        "lane": (lane_of, len(lanes) - 1),
        "duration_ns": (_whole(transfer_ns(trace, model)), 0),
        "start_ns": (np.rint(trace.start_ns + begin[None, :, None]), np.rint(begin)),
        "measured_ns": (_whole(trace.duration_ns), 0),
        "order": (each(place) + 1 + each_step * (count + 1), row * (count + 1)),
        "name": (each(name_of), names.index(BEGIN)),
        "operator": (each(name_of), 0),
        "phase": (each(phase_of), 0),
        "step": (step_of, np.array(trace.steps)),
        "group": (_groups(trace, model, ids), -1),
    }
    rest = {"gap_level": 1, "parent": -1, "detail": -1, "alive": True}
    size = ids.size + steps
    tasks = {
        name: column(*values[name], dtype) if name in values else np.full(size, rest.get(name, 0), dtype=dtype)
        for name, dtype in TASK_COLUMNS.items()
    }
    info = GraphInfo(
        source=source,
        window_ns=(0, int(trace.step_time_ns.sum())),
        steps=trace.steps,
        step_ns=tuple(np.rint(trace.step_time_ns).astype(np.int64).tolist()),
        measured_ns=int(np.rint(trace.step_time_ns.sum())),
        ranks=tuple(sorted(set(trace.worker.ravel().tolist()))),
        world_size=trace.dp_size * trace.pp_size,
        facts={"steps_found_by": OPERATIONS},
    )
    edges = _edges(trace, model, ids, marks)
    waits = {name: np.zeros(0, dtype=dtype) for name, dtype in WAIT_COLUMNS.items()}
    return JobGraph(
        Graph(ColumnTable(tasks), ColumnTable(edges), ColumnTable(waits), lanes, names, [""], info=info), ids
    )


def _whole(time_ns: FloatArray) -> IntArray:
    """Whole nanoseconds; clocks that disagree a little make some times negative, which none is."""
    whole: IntArray = np.rint(np.maximum(time_ns, 0)).astype(np.int64)
    return whole


def _lanes(trace: OperationTrace) -> tuple[list[Lane], IntArray]:
    """A lane for each stream of each worker, and one for the marks; and the lane of every operation."""
    lanes: list[Lane] = []
    row: dict[tuple[int, int, str], int] = {}
    lane_of = np.empty(trace.start_ns.shape, dtype=np.int64)
    for at, op in enumerate(trace.operations):
        stream = _stream(op.kind)
        for rank in range(trace.dp_size):
            worker = int(trace.worker[op.stage, rank])
            key = (op.stage, rank, stream)
            if key not in row:
                row[key] = len(lanes)
                name = f"stage {op.stage}, data-parallel rank {rank}: {stream}"
                lanes.append(Lane(name, LaneKind.STREAM, Discipline.ORDER, worker, 0, len(lanes)))
            lane_of[at, :, rank] = row[key]
    lanes.append(Lane("steps", LaneKind.THREAD, Discipline.ORDER))
    return lanes, lane_of


def _stream(kind: str) -> str:
    if kind in (ops.ALL_GATHER, ops.REDUCE_SCATTER):
        return "parameters and gradients"
    return kind if kind in (*ops.P2P, ops.SEPARATE_ALL_REDUCE) else "computation"


def _groups(trace: OperationTrace, model: PipelineModel, ids: IntArray) -> IntArray:
    """The rendezvous of every task: of one step, and of one data-parallel rank unless it joins them."""
    _, steps, ranks = ids.shape
    found = np.full(ids.shape, -1, dtype=np.int64)
    step, rank = np.arange(steps)[:, None], np.arange(ranks)[None, :]
    for number, (members, across) in enumerate(zip(model.groups, model.across_dp, strict=True)):
        if len(members) > 1 or across:
            found[list(members)] = (number * steps + step) * ranks + (0 * rank if across else rank)
    _, packed = np.unique(found, return_inverse=True)
    dense: IntArray = packed.reshape(found.shape) - int((found < 0).any())
    return dense


def _edges(trace: OperationTrace, model: PipelineModel, ids: IntArray, marks: IntArray) -> dict[str, NDArray[Any]]:
    delay = _whole(launch_delay_ns(trace, model))
    parts = [np.zeros((3, 0), dtype=np.int64)]
    within = [i for i, parents in enumerate(model.parents) if parents]
    first = [i for i, parents in enumerate(model.parents) if not parents]
    for i in within:
        parts += [np.stack((ids[parent], ids[i], delay[i])).reshape(3, -1) for parent in model.parents[i]]
    before = np.broadcast_to(marks[None, :, None], ids.shape)
    parts.append(np.stack((before[first], ids[first], delay[first])).reshape(3, -1))
    last = sorted(set(range(len(ids))) - {parent for parents in model.parents for parent in parents})
    after = np.broadcast_to(marks[None, 1:, None], (len(last), marks.size - 1, ids.shape[2]))
    ends = ids[last][:, :-1]
    parts.append(np.stack((ends, after, np.zeros_like(ends))).reshape(3, -1))
    rows = np.concatenate(parts, axis=1)
    kind = np.full(rows.shape[1], int(EdgeType.DEPENDENCY))
    values = {"src": rows[0], "dst": rows[1], "type": kind, "latency_ns": rows[2]}
    return {name: values[name].astype(dtype) for name, dtype in EDGE_COLUMNS.items()}
