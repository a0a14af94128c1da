"""Whatever the graph, a scenario either says why it does not apply or gives a range that encloses its prediction."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.whatif.advice import useful
from leadline.whatif.builder import GraphBuilder
from leadline.whatif.graph import DeviceInfo, Graph, GraphInfo
from leadline.whatif.kinds import LaneKind, Phase, TaskKind
from leadline.whatif.predict import predict, rank

NAMES = (
    "volta_sgemm_128x64", "sm90_xmma_fprop_tf32f32", "cudnn::bn_fw_tr", "vectorized_elementwise_kernel_relu",
    "multi_tensor_apply_kernel", "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)", "ncclAllReduce",
    "reduce_kernel", "nchwToNhwcKernel", "",
)  # fmt: skip
LAYERS = ("", "Conv2d_0", "ReLU_0", "Linear_0")
DEVICES = ("NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 2080 Ti", "AMD Instinct MI300X", "unknown", "")

item = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(list(Phase)),
    st.sampled_from(LAYERS),
    st.integers(0, 200_000),
    st.integers(0, 50_000),
    st.sampled_from(["stream 7", "stream 20", "cpu", "sync", "data"]),
)


def build(items: list[tuple[str, Phase, str, int, int, str]], steps: int, device: str) -> Graph:
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    streams = {name: builder.lane(name, LaneKind.STREAM, device=0) for name in ("stream 7", "stream 20")}
    for step in range(steps):
        for name, phase, layer, work, call, where in items:
            shared = {"phase": phase, "layer": layer, "step": step}
            if where in streams:
                launch = builder.task("cudaLaunchKernel", TaskKind.CPU, main, call, gap_ns=call // 3, **shared)
                kind = TaskKind.COMM if name.startswith("nccl") else TaskKind.GPU
                builder.task(name, kind, streams[where], work, launch=launch, latency_ns=1000, bytes=work, **shared)
            elif where == "data":
                builder.task(
                    "enumerate(DataLoader)#next", TaskKind.DATA, main, work, step=step, phase=Phase.DATA_LOADING
                )
            else:
                task = builder.task(name or "aten::mm", TaskKind.CPU, main, call, gap_ns=work // 5, **shared)
                if where == "sync":
                    builder.wait(task, streams["stream 7"])
    graph = builder.graph()
    graph.info = GraphInfo(steps=graph.info.steps, devices=(DeviceInfo(name=device),), world_size=2)
    return graph


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(item, min_size=1, max_size=25), st.integers(1, 3), st.sampled_from(DEVICES))
def test_ranking_of_any_graph(items, steps, device):
    report = rank(build(items, steps, device))
    for found in report.scenarios:
        assert math.isfinite(found.low_ns) and math.isfinite(found.high_ns), found.title
        assert found.predicted_ns >= 0
        assert not math.isnan(found.speedup)
        assert found.assumptions, found.title
    advised = [found for found in useful(report) if found.samples == 1]  # others are not ranked among times of a step
    open_ = [at for at, found in enumerate(advised) if found.low_gain <= 1]
    assert all(found.low_gain <= 1 for found in advised[min(open_, default=len(advised)) :])
    assert not [reason for reason in report.not_applicable.values() if "cannot be simulated" in reason]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(item, min_size=1, max_size=20), st.integers(1, 2), st.floats(1.0, 64.0))
def test_a_faster_device_is_never_slower(items, steps, factor):
    graph = build(items, steps, DEVICES[0])
    for device in ("gpu", "cpu", "pcie", "network"):
        try:
            found = predict(graph, ["faster"], {"device": device, "factor": f"{factor:.3f}"})
        except ValueError:
            continue  # the graph has nothing on that device
        assert found.scenarios[0].predicted_ns <= found.replayed_ns + 2 * len(graph)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(item, min_size=1, max_size=20), st.integers(1, 2))
def test_a_graph_is_not_changed_by_asking(items, steps):
    graph = build(items, steps, DEVICES[0])
    before = {name: graph.column(name).copy() for name in ("duration_ns", "gap_ns", "alive", "order")}
    first, second = rank(graph), rank(graph)
    for name, column in before.items():
        assert (graph.column(name) == column).all(), name
    assert [item.predicted_ns for item in first.scenarios] == [item.predicted_ns for item in second.scenarios]


def test_steps_that_differ_widen_the_time_more_than_the_gain(step):
    """The step time of another run is as uncertain as this one's mean; what a change gains on these steps is not."""
    for number, length in enumerate((100, 100, 100, 4000)):
        step.step = number
        step.kernel("sgemm", length)
        step.sync()
    graph = step.graph()
    graph.info = replace(graph.info, step_ns=(110_000, 110_000, 110_000, 4_010_000))
    report = rank(graph)
    found = next(item for item in report.scenarios if item.title == "faster gpu 2x")
    assert 1.3 < found.low_gain < found.speedup < found.high_gain < 2.3
    assert found.low_ns < 0.5 * found.predicted_ns < 1.5 * found.predicted_ns < found.high_ns
    assert any("the steps differ much (110 µs to 4.01 ms)" in warning for warning in report.warnings)
