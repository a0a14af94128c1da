"""`simulate`: when would every task of a graph start and end, what was on the critical path, and who had time to spare?

The compiled core (`leadline._simulate`) is used when it is there; the pure Python one gives identical answers and also
runs custom schedules.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.whatif import reference
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, GraphError, IntArray, TaskKind
from leadline.whatif.program import Program, flatten

Schedule = Literal["priority", "earliest"] | reference.Choose


@dataclass(frozen=True)
class Result:
    """Times relative to the window's start, by task id of the graph; -1 for removed tasks.

    `end_ns` includes waiting (a synchronisation ends when what it awaits has ended, a collective when all have come).
    `slack_ns`: how much later a task could start without a later end of the window. `per_step_ns` runs parallel to
    `steps`: completion of the step's last task minus that of the step before; the sum is `makespan_ns`, which begins
    when the device had done what was launched before the window, at `begun_ns`. `given_ns`: when the CPU had launched
    the last work.
    """

    start_ns: IntArray
    end_ns: IntArray
    slack_ns: IntArray
    makespan_ns: int
    steps: tuple[int, ...]
    per_step_ns: IntArray
    begun_ns: int
    given_ns: int
    _program: Program
    _run: reference.Run
    _beside: NDArray[np.bool_]

    @cached_property
    def critical_path(self) -> IntArray:
        """Task ids in time order, each the reason for the start or the end of the next."""
        return _critical_path(self._program, self._run, self._beside)


def simulate(graph: Graph, schedule: Schedule | None = None, *, compiled: bool | None = None) -> Result:
    """Run the graph.

    schedule: None or "priority": lanes that choose take the smallest `priority` first, then the earliest ready;
    "earliest": they ignore priorities; a callable (lane, time_ns, ready task ids) -> task id or None decides for every
    READY lane (slow path).
    compiled: force the compiled core (True) or the Python one (False); None takes what is there.

    Raises GraphError when tasks can never start (a cycle, or a schedule that refuses for ever).
    """
    program = flatten(graph)
    choose = schedule if callable(schedule) else None
    if not callable(schedule) and schedule not in (None, "priority", "earliest"):
        raise GraphError(f"unknown schedule {schedule!r}; use 'priority', 'earliest' or a callable")
    if compiled and choose is not None:
        raise GraphError("a schedule written in Python needs the Python simulator; leave out compiled=True")
    core = None if compiled is False or choose is not None else _compiled_core()
    if core is None:
        if compiled:
            raise GraphError("the compiled simulator is not in this installation; leave out compiled=True")
        run = reference.run(program, by_priority=schedule != "earliest", choose=choose)
    else:
        run = core(program, schedule != "earliest")
    if run.finished != program.ids.size:
        raise GraphError(_why_stuck(graph, program, run))
    return _result(graph, program, run)


def _compiled_core() -> reference.CompiledRun | None:
    try:
        from leadline import _simulate
    except ImportError:
        return None

    def core(program: Program, by_priority: bool) -> reference.Run:
        return reference.Run(
            *_simulate.run(
                program.lane, program.duration_ns, program.gap_ns, program.earliest_ns, program.group,
                program.priority, program.next_on_lane, program.launches, program.pending, program.initial,
                program.discipline, program.edge_offset, program.edge_dst, program.edge_type,
                program.edge_latency_ns, program.wait_offset, program.wait_lane, program.group_size, by_priority,
            )
        )  # fmt: skip

    return core


def _result(graph: Graph, program: Program, run: reference.Run) -> Result:
    count = len(graph)
    start, end, slack = (np.full(count, -1, dtype=np.int64) for _ in range(3))
    start[program.ids], end[program.ids], slack[program.ids] = run.start_ns, run.end_ns, run.slack_ns
    steps = graph.info.steps or tuple(np.unique(graph.tasks["step"][program.ids]).tolist())
    completed, begun_ns = step_completions(graph, program.ids, run.end_ns, steps)
    return Result(
        start_ns=start,
        end_ns=end,
        slack_ns=slack,
        makespan_ns=int(completed[-1]) - begun_ns if completed.size else 0,
        steps=steps,
        per_step_ns=np.diff(completed, prepend=begun_ns),
        begun_ns=begun_ns,
        given_ns=_given_ns(program, run),
        _program=program,
        _run=run,
        _beside=graph.tasks["beside"][program.ids],
    )


def _given_ns(program: Program, run: reference.Run) -> int:
    """When the last launch had ended; 0 where nothing is launched."""
    source = np.repeat(np.arange(program.ids.size), np.diff(program.edge_offset))
    return int(run.end_ns[source[program.edge_type == int(EdgeType.LAUNCH)]].max(initial=0))


def step_completions(graph: Graph, ids: IntArray, end_ns: IntArray, steps: tuple[int, ...]) -> tuple[IntArray, int]:
    """When each step had completed: the latest end of its tasks and of all steps before; ns, parallel to `steps`. And
    when the device had done what was launched before the first: of a device that is behind, the time that this takes
    belongs to no step; 0 where there is no such work.

    `end_ns` is parallel to `ids`. Work of steps before the first counts to the first, work of later steps to the last,
    and what goes on beside the steps to none.
    """
    if not steps:
        return np.zeros(0, dtype=np.int64), 0
    counts = np.flatnonzero(~graph.tasks["beside"][ids])
    ids, end_ns = ids[counts], end_ns[counts]
    kind, step, seen = (graph.tasks[name][ids] for name in ("kind", "step", "start_ns"))
    carried = np.isin(kind, (int(TaskKind.GPU), int(TaskKind.COMM))) & (step < steps[0]) & (seen >= 0)
    begun = int(end_ns[carried].max(initial=0))
    row = np.clip(np.searchsorted(np.array(steps, dtype=np.int64), step, side="right") - 1, 0, None)
    latest = np.zeros(len(steps), dtype=np.int64)
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(len(steps)))
    held = np.flatnonzero(np.diff(first, append=row.size))  # steps that have tasks
    latest[held] = np.maximum(np.maximum.reduceat(end_ns[order], first[held]), 0) if held.size else 0
    return np.maximum(np.maximum.accumulate(latest), begun), begun


def _critical_path(program: Program, run: reference.Run, beside: NDArray[np.bool_]) -> IntArray:
    """Backwards from what ended the last step."""
    if program.ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    at = int(np.argmax(np.where(beside, -1, run.end_ns)))
    by_end = True
    path: list[int] = []
    while at >= 0 and len(path) <= 2 * program.ids.size:
        path.append(at)
        decided_end = int(run.end_cause[at]) if by_end else -1
        if decided_end >= 0:
            # a collective ends because its last member started; a synchronisation because something ended
            by_end = program.group[at] < 0
            at = decided_end
        else:
            by_end = not bool(run.from_start[at])
            at = int(run.cause[at])
    return program.ids[np.array(path[::-1], dtype=np.int64)]


def _why_stuck(graph: Graph, program: Program, run: reference.Run) -> str:
    stuck = program.ids[run.end_ns == reference.UNSET]
    names = ", ".join(repr(graph.task(int(task)).name) for task in stuck[:3])
    return (
        f"{stuck.size} of {program.ids.size} tasks can never start, among them {names}: they wait for one another in a "
        "cycle, for a collective whose other ranks are missing, or for a schedule that refuses them; "
        "check the edges added last"
    )
