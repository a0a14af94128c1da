"""The simulator's rules one by one, both implementations against each other, and what slack and critical path mean."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Program
from programs import programs, to_graph

from leadline.whatif import (
    Discipline,
    EdgeType,
    Graph,
    GraphBuilder,
    GraphError,
    LaneKind,
    TaskKind,
    simulate,
)

COMPILED = importlib.util.find_spec("leadline._simulate") is not None
many = settings(max_examples=100, deadline=None)


@pytest.mark.skipif(not COMPILED, reason="the compiled simulator is not built here, so there is nothing to compare")
@many
@given(programs(ranks=3), st.data())
def test_both_implementations_give_identical_answers(program: Program, data: st.DataObject) -> None:
    graph = to_graph(program, 3).graph
    graph.tasks.write("priority")[:] = data.draw(st.lists(st.integers(0, 3), min_size=len(graph), max_size=len(graph)))
    for lane, item in enumerate(graph.lanes):
        if item.kind == LaneKind.STREAM and data.draw(st.booleans()):
            graph.lanes[lane] = type(item)(item.name, item.kind, Discipline.READY, item.rank, item.device)
    try:
        expected = simulate(graph, compiled=False)
    except GraphError as error:
        with pytest.raises(GraphError, match=str(error)[:20]):
            simulate(graph, compiled=True)
        return
    result = simulate(graph, compiled=True)
    for field in ("start_ns", "end_ns", "slack_ns", "critical_path", "per_step_ns"):
        assert np.array_equal(getattr(result, field), getattr(expected, field)), field


@many
@given(programs(threads=1), st.data())
def test_slack_is_exactly_what_a_task_can_be_late(program: Program, data: st.DataObject) -> None:
    graph = to_graph(program, 3).graph
    result = simulate(graph)
    task = data.draw(st.integers(0, len(graph) - 1))
    for late, grows in ((0, False), (1, True)):
        delayed = graph.copy()
        delayed.tasks.write("earliest_ns")[task] = result.start_ns[task] + result.slack_ns[task] + late
        assert (simulate(delayed).makespan_ns > result.makespan_ns) == grows


@many
@given(programs(ranks=3, threads=1))
def test_the_critical_path_alone_explains_the_whole_time(program: Program) -> None:
    graph = to_graph(program, 3).graph
    result = simulate(graph)
    assert result.end_ns[result.critical_path[-1]] == result.makespan_ns
    graph.set_duration(~np.isin(np.arange(len(graph)), result.critical_path), 0)
    assert simulate(graph).makespan_ns == result.makespan_ns


def two_threads(launch_at: int) -> tuple[Graph, int]:
    """Thread A launches a kernel and synchronises at 100; thread B launches a long kernel to the stream."""
    build = GraphBuilder()
    a, b = build.lane("a", LaneKind.THREAD), build.lane("b", LaneKind.THREAD)
    stream = build.lane("stream", LaneKind.STREAM)
    first = build.task("launch", TaskKind.CPU, a, 100)
    build.task("short", TaskKind.GPU, stream, 50, launch=first, latency_ns=10)
    wait = build.task("synchronise", TaskKind.CPU, a, 5)
    build.wait(wait, stream)
    build.task("work", TaskKind.CPU, b, launch_at)
    second = build.task("launch", TaskKind.CPU, b, 20)
    build.task("long", TaskKind.GPU, stream, 1000, launch=second, latency_ns=10)
    return build.graph(), wait


def test_which_kernel_a_synchronisation_awaits_is_decided_while_simulating() -> None:
    late, wait = two_threads(launch_at=150)
    assert simulate(late).end_ns[wait] == 105
    early, wait = two_threads(launch_at=80)
    assert simulate(early).end_ns[wait] == 90 + 1000 + 5
    # an edit of one thread changes what the other waits for
    late.set_duration(late.select(name="work"), 80)
    assert simulate(late).end_ns[wait] == 1095


def channel(priorities: Sequence[int], discipline: Discipline = Discipline.READY) -> tuple[Graph, list[int]]:
    """Five transfers of 100 ns that become ready at 0, 10, 20, 30 and 40."""
    build = GraphBuilder()
    lane = build.lane("network", LaneKind.CHANNEL, discipline=discipline)
    tasks = [
        build.task(f"push {number}", TaskKind.COMM, lane, 100, earliest_ns=10 * number, priority=priority)
        for number, priority in enumerate(priorities)
    ]
    return build.graph(), tasks


@pytest.mark.parametrize(
    "compiled",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(not COMPILED, reason="the compiled simulator is not built here")),
    ],
)
def test_channels_take_the_smallest_priority_first(compiled: bool) -> None:
    graph, tasks = channel([5, 4, 3, 2, 1])
    assert simulate(graph, compiled=compiled).start_ns[tasks].tolist() == [0, 400, 300, 200, 100]
    assert simulate(graph, "earliest", compiled=compiled).start_ns[tasks].tolist() == [0, 100, 200, 300, 400]


def test_a_schedule_written_in_python() -> None:
    graph, tasks = channel([0] * 5)
    asked: list[tuple[int, int, list[int]]] = []

    def last_ready(lane: int, time_ns: int, ready: Sequence[int]) -> int | None:
        asked.append((lane, time_ns, list(ready)))
        return max(ready) if len(ready) > 1 or time_ns > 0 else None  # nothing runs before two are ready

    result = simulate(graph, last_ready)
    assert result.start_ns[tasks].tolist() == [410, 10, 310, 210, 110]
    assert asked[0] == (0, 0, [tasks[0]])
    with pytest.raises(GraphError, match="a schedule that refuses them"):
        simulate(graph, lambda lane, time_ns, ready: None)
    with pytest.raises(GraphError, match="unknown schedule"):
        simulate(graph, "fastest")  # type: ignore[arg-type]


def test_tasks_of_a_cycle_are_named() -> None:
    build = GraphBuilder()
    lanes = [build.lane(name, LaneKind.THREAD) for name in ("a", "b")]
    first, second = (build.task(name, TaskKind.CPU, lane, 1) for name, lane in zip(("egg", "hen"), lanes, strict=True))
    build.edge(first, second, EdgeType.DEPENDENCY)
    build.edge(second, first, EdgeType.DEPENDENCY)
    with pytest.raises(GraphError, match="2 of 2 tasks can never start, among them 'egg', 'hen'"):
        simulate(build.graph())


def test_work_may_overlap_on_one_stream() -> None:
    build = GraphBuilder()
    thread, stream = build.lane("thread", LaneKind.THREAD), build.lane("stream", LaneKind.STREAM)
    launch = build.task("launch", TaskKind.CPU, thread, 1)
    first = build.task("first", TaskKind.GPU, stream, 100, gap_ns=-30, launch=launch)
    second = build.task("second", TaskKind.GPU, stream, 10, launch=launch)
    wait = build.task("synchronise", TaskKind.CPU, thread, 0)
    build.wait(wait, stream)
    graph = build.graph()
    assert simulate(graph).start_ns[second] == 70
    assert simulate(graph).end_ns[wait] == 100  # the last one issued ends before the one in front of it
    graph.scale(first, 2)
    assert simulate(graph).start_ns[second] == 140


def test_work_that_nothing_launches_is_issued_with_its_neighbour() -> None:
    build = GraphBuilder()
    thread, stream = build.lane("thread", LaneKind.THREAD), build.lane("stream", LaneKind.STREAM)
    early = build.task("carried", TaskKind.GPU, stream, 40, earliest_ns=5)
    launch = build.task("launch", TaskKind.CPU, thread, 20)
    build.task("kernel", TaskKind.GPU, stream, 10, launch=launch, latency_ns=2)
    orphan = build.task("orphan", TaskKind.GPU, stream, 10)
    wait = build.task("synchronise", TaskKind.CPU, thread, 1)
    build.wait(wait, stream)
    result = simulate(build.graph())
    assert result.start_ns[early] == 5
    assert (result.start_ns[orphan], result.end_ns[wait]) == (55, 66)


def test_a_copy_shares_what_is_not_written() -> None:
    graph, _ = two_threads(80)
    copy = graph.copy()
    copy.scale(copy.select(kind=TaskKind.GPU), 0.5)
    assert np.shares_memory(graph.column("order"), copy.column("order"))
    assert not np.shares_memory(graph.column("duration_ns"), copy.column("duration_ns"))
    assert simulate(graph).makespan_ns == 1095 and simulate(copy).makespan_ns == 595
    copy.insert("added", TaskKind.CPU, 0, 7)
    assert len(copy) == len(graph) + 1


def test_edits_that_make_no_sense_are_refused() -> None:
    graph, wait = two_threads(80)
    for edit in (
        lambda: graph.scale(wait, -1),
        lambda: graph.scale(wait, float("nan")),
        lambda: graph.set_duration(wait, -5),
        lambda: graph.set_gap(wait, -5),
        lambda: graph.insert("x", TaskKind.CPU, 99, 1),
        lambda: graph.insert("x", TaskKind.CPU, 0, -1),
        lambda: graph.move(wait, 99),
        lambda: graph.connect(wait, wait),
    ):
        with pytest.raises(GraphError):
            edit()
    graph.remove(wait)
    graph.connect(0, wait)
    with pytest.raises(GraphError, match="removed task"):
        simulate(graph)


def test_selection_by_everything() -> None:
    graph, _ = two_threads(80)
    assert len(graph.select(name="^launch$")) == 2
    assert len(graph.select(kind=(TaskKind.GPU,), name="long|short")) == 2
    assert graph.select(lambda task: task.duration_ns == 1000) == graph.select(name="long")
    launches = graph.select(name="launch")
    assert graph.launched_by(launches) == graph.select(kind=TaskKind.GPU)
    assert graph.launchers_of(graph.select(kind=TaskKind.GPU)) == launches
    assert graph.subtree(launches) == launches | graph.select(kind=TaskKind.GPU)
    assert not graph.select(rank=3) and not graph.select(layer="conv")
    assert len(graph.select(kind=TaskKind.CPU) - launches) == 2
