"""The compiled way from a graph to a program is the Python one."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from leadline.whatif import Graph, TaskKind
from leadline.whatif.builder import GraphBuilder
from leadline.whatif.kinds import Discipline, EdgeType, GraphError, LaneKind
from leadline.whatif.program import flatten


def drawn(seed: int) -> Graph:
    """Threads, streams and a channel with tasks in no order, edges of all types, some tasks removed."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    threads = [builder.lane(f"thread {number}", LaneKind.THREAD) for number in range(2)]
    streams = [builder.lane(f"stream {number}", LaneKind.STREAM) for number in range(2)]
    channel = builder.lane("network", LaneKind.CHANNEL)
    calls = [builder.task("call", TaskKind.CPU, int(rng.choice(threads)), int(rng.integers(1, 50))) for _ in range(40)]
    work = [builder.task("work", TaskKind.GPU, int(rng.choice(streams)), int(rng.integers(1, 90))) for _ in range(40)]
    sent = [builder.task("send", TaskKind.COMM, channel, int(rng.integers(1, 20))) for _ in range(6)]
    graph = builder.graph()
    for task in work:
        for call in rng.choice(calls, int(rng.integers(0, 3)), replace=False):
            graph.connect(int(call), task, EdgeType.LAUNCH, int(rng.integers(0, 9)))
    for _ in range(30):
        source, target = rng.choice([*calls, *work, *sent], 2, replace=False)
        graph.connect(int(source), int(target), EdgeType.DEPENDENCY)
    graph.tasks.write("order")[:] = rng.permutation(len(graph))
    for task in rng.choice(calls, 5, replace=False):
        graph.await_lane(int(task), int(rng.choice(streams)))
    graph.remove([int(task) for task in rng.choice([*calls, *work], int(rng.integers(0, 12)), replace=False)])
    return graph


@pytest.mark.parametrize("seed", range(30))
def test_both_ways_give_one_program(seed: int) -> None:
    graph = drawn(seed)
    assert {lane.discipline for lane in graph.lanes} == set(Discipline)
    compiled, python = flatten(graph, compiled=True), flatten(graph, compiled=False)
    for column in fields(python):
        mine, theirs = getattr(compiled, column.name), getattr(python, column.name)
        assert np.array_equal(mine, theirs), column.name
        assert mine.dtype == theirs.dtype, column.name


@pytest.mark.parametrize("compiled", [True, False])
def test_an_edge_to_a_removed_task_is_refused(compiled: bool) -> None:
    graph = drawn(1)
    graph.remove([0])
    graph.edges.append(src=0, dst=1, type=int(EdgeType.DEPENDENCY), latency_ns=0)
    with pytest.raises(GraphError, match="leads to a removed task"):
        flatten(graph, compiled=compiled)
