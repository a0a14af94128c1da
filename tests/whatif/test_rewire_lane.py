"""A task that goes away hands what it waited for to the task behind it on its lane."""

from __future__ import annotations

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.kinds import EdgeType, LaneKind, TaskKind
from leadline.whatif.simulator import simulate


def test_next_task_on_the_lane_waits_for_what_the_removed_one_waited_for() -> None:
    builder = GraphBuilder()
    main, helper = builder.lane("main", LaneKind.THREAD), builder.lane("autograd", LaneKind.THREAD)
    builder.task("forward", TaskKind.CPU, main, 10)
    backward = builder.task("backward", TaskKind.CPU, helper, 100)
    first = builder.task("first of optimizer", TaskKind.CPU, main, 5)
    second = builder.task("second of optimizer", TaskKind.CPU, main, 7)
    builder.edge(backward, first, EdgeType.THREAD)
    graph = builder.graph()
    assert simulate(graph).makespan_ns == 112
    graph.remove(first)
    assert simulate(graph).start_ns[second] == 100


def test_a_removed_synchronisation_waits_for_nothing() -> None:
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    stream = builder.lane("stream 7", LaneKind.STREAM)
    launch = builder.task("launch", TaskKind.CPU, main, 1)
    kernel = builder.task("kernel", TaskKind.GPU, stream, 100, launch=launch)
    wait = builder.task("synchronise", TaskKind.CPU, main, 1)
    builder.edge(kernel, wait, EdgeType.SYNC)
    after = builder.task("next", TaskKind.CPU, main, 1)
    graph = builder.graph()
    assert simulate(graph).start_ns[after] >= 100
    graph.remove(wait)
    assert simulate(graph).start_ns[after] == 1
