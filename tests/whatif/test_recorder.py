"""What recording cost small operators: taken out of gains on a CPU and of torch.profiler's beside a device, else doubted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leadline.whatif import Graph, TaskKind, simulate
from leadline.whatif.builder import GraphBuilder
from leadline.whatif.draws import technique
from leadline.whatif.kinds import LaneKind
from leadline.whatif.predict import predict
from leadline.whatif.recorder import RECORDER, TORCH, cost_of, unrecorded, without_recorder
from leadline.whatif.steady import Steady
from leadline.whatif.structure import Structure

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
    result = simulate(graph)
    found = Structure(graph, result, step_ns(graph), Steady.of(graph, result)).doubts(
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
    result = simulate(graph)
    found = Structure(graph, result, step_ns(graph), Steady.of(graph, result)).doubts(
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


def recorded(graph: Graph, **options: bool) -> Graph:
    """The same graph from a trace of torch.profiler."""
    graph.info = replace(graph.info, facts={"recorder": {"name": TORCH, **options}})
    return graph


def both_limits(kernel_us: float, *, steps: int = 1) -> Graph:
    """200 calls of 20 us, each of which launches a kernel."""
    builder = GraphBuilder()
    main, stream = builder.lane("main", LaneKind.THREAD), builder.lane("stream", LaneKind.STREAM, device=0)
    for number in range(200 * steps):
        call = builder.task("aten::mul", TaskKind.CPU, main, 20_000, step=number // 200)
        builder.task("kernel", TaskKind.GPU, stream, round(kernel_us * 1e3), launch=call, step=number // 200)
    return builder.graph()


def test_options_of_torch_profiler_cost() -> None:
    assert cost_of({}) < cost_of({"record_shapes": True}) == 1 < cost_of({"record_shapes": True, "with_stack": True})


def test_a_recorder_that_nobody_knows_costs_what_it_may() -> None:
    graph = both_limits(50.0)
    assert unrecorded(graph, Steady.of(graph, simulate(graph))) is None
    told = " ".join(predict(graph, ["faster"], {"device": "cpu", "factor": "2"}).scenarios[0].assumptions)
    assert "unknown" not in told, "a gain that does not answer to it needs no sentence"
    hungry = both_limits(5.0)
    found = predict(hungry, ["faster"], {"device": "gpu", "factor": "2"}).scenarios[0]
    assert found.speedup == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("kernel_us", "pace"), [(100.0, 0.6), (1.0, 1.0)])
def test_a_cpu_beside_a_device_that_is_behind(kernel_us: float, pace: float) -> None:
    """Where the device is the limit the calls' time says little: an expectation, between all and half of it."""
    graph = recorded(both_limits(kernel_us), record_shapes=True)
    steady = Steady.of(graph, simulate(graph))
    bare = unrecorded(graph, steady)
    assert bare is not None
    spent = [float(one.column("duration_ns")[one.select(name="mul").ids].mean()) for one in (bare.expected, bare.least)]
    assert spent[0] == pytest.approx((20_000 - COST) * pace, rel=0.03)
    assert spent[1] <= spent[0]
    assert simulate(graph).makespan_ns == simulate(both_limits(kernel_us)).makespan_ns, "the trace's graph is untouched"
    fast = predict(graph, ["faster"], {"device": "gpu", "factor": "1000"}).scenarios[0]
    kept = 200 * (20_000 - COST) * pace / simulate(bare.expected).makespan_ns
    assert 1 / fast.speedup == pytest.approx(kept, rel=0.03)
    assert fast.low_gain <= fast.speedup <= fast.high_gain


def test_gains_beside_a_cpu_limit_are_of_both_unrecorded() -> None:
    """Half of the calls gone halves what is left, whatever recording cost."""
    graph = recorded(both_limits(1.0), record_shapes=True)
    found = predict(graph, ["faster"], {"device": "cpu", "factor": "2"}).scenarios[0]
    assert found.speedup == pytest.approx(2, rel=0.02)
    assert found.predicted_ns == pytest.approx(simulate(graph).makespan_ns / found.speedup)


def test_no_call_becomes_free() -> None:
    graph = both_limits(1.0)
    bare = without_recorder(graph, 1e6)
    calls = bare.select(name="mul").ids
    assert bare.column("duration_ns")[calls].tolist() == [6_000] * len(calls)
