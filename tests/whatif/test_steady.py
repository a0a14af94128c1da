"""A window that begins with a device behind: what an edit gains once the CPU's lead is used up."""

from __future__ import annotations

import pytest

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.graph import Graph, GraphInfo
from leadline.whatif.kinds import EdgeType, LaneKind, TaskKind
from leadline.whatif.simulator import simulate
from leadline.whatif.steady import Steady

CALL_NS, KERNEL_NS, CALLS, STEPS = 20_000, 50_000, 100, 3


def behind(call_ns: int = CALL_NS) -> Graph:
    """Three steps of 100 calls for kernels of 50 us, begun while the device has a step's work left. A queue holds 100."""
    builder = GraphBuilder()
    main, stream = builder.lane("main", LaneKind.THREAD), builder.lane("stream", LaneKind.STREAM, device=0)
    work = [builder.task("kernel", TaskKind.GPU, stream, KERNEL_NS, step=-1) for _ in range(CALLS)]
    for number in range(CALLS * STEPS):
        step = number // CALLS
        call = builder.task("launch", TaskKind.CPU, main, call_ns, step=step)
        builder.edge(work[number], call, EdgeType.ROOM)
        work.append(builder.task("kernel", TaskKind.GPU, stream, KERNEL_NS, step=step, launch=call))
    graph = builder.graph(GraphInfo(steps=(0, 1, 2)))
    graph.tasks.write("start_ns")[:] = 0
    return graph


def faster(graph: Graph, factor: float) -> Graph:
    edited = graph.copy()
    edited.scale(edited.select(kind=TaskKind.GPU), 1 / factor)
    return edited


@pytest.mark.parametrize("factor", [1.0, 2.0, 10.0, 1000.0])
def test_a_step_takes_what_its_slower_side_needs(factor: float) -> None:
    graph = behind()
    steady = Steady.of(graph, simulate(graph))
    edited = faster(graph, factor)
    truth = CALLS * max(CALL_NS, KERNEL_NS / factor)
    assert steady.step_ns(edited, simulate(edited)) == pytest.approx(truth, rel=0.02)


def test_the_replay_keeps_a_lead_that_became_smaller() -> None:
    """A CPU that needs more than the steps took, as recording makes it: what was recorded stays as it is."""
    graph = behind(call_ns=60_000)
    result = simulate(graph)
    assert result.makespan_ns < result.given_ns
    steady = Steady.of(graph, result)
    assert steady.counts < 1
    assert steady.step_ns(graph, result) == pytest.approx(result.makespan_ns / STEPS, rel=1e-6)
