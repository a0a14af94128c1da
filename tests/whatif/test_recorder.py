"""What recording cost small operators: taken out of gains on a CPU, doubted beside a device."""

from __future__ import annotations

import pytest

from leadline.whatif import Graph, TaskKind, simulate
from leadline.whatif.builder import GraphBuilder
from leadline.whatif.draws import technique
from leadline.whatif.kinds import LaneKind
from leadline.whatif.structure import RECORDER, Structure

COST = technique("recorder_event_ns", larger_is_faster=False).expected


def step(*, device: bool) -> Graph:
    """A hundred operators of 10 us, half of which an edit may take away; with a device, one short kernel as well."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    for number in range(100):
        builder.task("aten::tiny" if number % 2 else "aten::other", TaskKind.CPU, main, 10_000)
    if device:
        stream = builder.lane("stream", LaneKind.STREAM, device=0)
        builder.task("kernel", TaskKind.GPU, stream, 1_000, launch=0)
    return builder.graph()


def without_tiny(graph: Graph) -> Graph:
    edited = graph.copy()
    edited.remove(edited.select(name="aten::tiny"))
    return edited


def step_ns(graph: Graph) -> float:
    return float(simulate(graph).makespan_ns)


@pytest.mark.parametrize("device", [False, True])
def test_half_of_the_operators_gone_is_half_of_the_recording(device: bool) -> None:
    """A third more of each operator is recording in both halves, so the gain is the same with and without it."""
    graph = step(device=device)
    edited = without_tiny(graph)
    found = Structure(graph, simulate(graph), step_ns(graph)).doubts(
        edited, simulate(edited), step_ns(edited), lambda other: step_ns(without_tiny(other))
    )
    assert found.shift == 1
    assert RECORDER not in found.doubts.facts


@pytest.mark.parametrize("device", [False, True])
def test_recording_makes_the_rest_look_longer(device: bool) -> None:
    """All time but one long operator's is recorded calls: halving that one gains more than the trace says."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    builder.task("aten::mm", TaskKind.CPU, main, 1_000_000)
    for _ in range(100):
        builder.task("aten::tiny", TaskKind.CPU, main, 10_000)
    if device:
        builder.task("kernel", TaskKind.GPU, builder.lane("stream", LaneKind.STREAM, device=0), 1_000, launch=0)
    graph = builder.graph()

    def halved(other: Graph) -> Graph:
        edited = other.copy()
        edited.scale(edited.select(name="aten::mm"), 0.5)
        return edited

    edited = halved(graph)
    found = Structure(graph, simulate(graph), step_ns(graph)).doubts(
        edited, simulate(edited), step_ns(edited), lambda other: step_ns(halved(other))
    )
    bare = (2_000_000 - 101 * COST) / (1_500_000 - 101 * COST)
    more = bare / (2_000_000 / 1_500_000)
    if device:
        assert found.shift == 1
        up, down = found.doubts.facts[RECORDER]
        assert (2.718281828**up, down) == (pytest.approx(more, rel=1e-3), 0)
    else:
        assert found.shift == pytest.approx(1 / more, rel=1e-3)
