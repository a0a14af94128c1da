"""Predictions on real traces: nothing crashes, ranges enclose, bounds hold, and stated numbers stay where they are."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, TaskKind
from leadline.whatif.load import load
from leadline.whatif.predict import Report, predict, rank

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
VGG = "triosim-vgg13-h100/profiler_vgg13-iter41.json"
FILES = (
    VGG,
    "hta/nccl_data.json.gz",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
)


@lru_cache(maxsize=8)
def graph_of(name: str) -> Graph:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"the public trace {name} is not at ../shared/traces")
    return load(path)


@lru_cache(maxsize=8)
def ranked(name: str) -> Report:
    return rank(graph_of(name))


@pytest.mark.parametrize("name", FILES)
def test_ranking(name: str) -> None:
    report = ranked(name)
    assert abs(report.replay_error) < 0.01
    assert report.scenarios
    for found in report.scenarios:
        assert found.low_ns >= 0 and found.high_ns < 2e4 * report.measured_ns, found.title
        assert found.assumptions, found.title
    worth = [found for found in report.scenarios if found.verdict in ("likely", "possible") and not found.hypothetical]
    alike = [found.samples != 1 for found in worth]
    assert alike == sorted(alike), "what takes more samples in a step is not ranked among times of the step"
    advised = [found.low_gain > 1 for found in worth if found.samples == 1]
    assert advised == sorted(advised, reverse=True), "what surely gains stands above what may gain nothing"


@pytest.mark.parametrize("name", FILES)
def test_nothing_cannot_be_simulated(name: str) -> None:
    """What is left out is left out for want of something in the trace, not because an edit went wrong."""
    wrong = {title: reason for title, reason in ranked(name).not_applicable.items() if "cannot be simulated" in reason}
    assert not wrong


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_identity_and_limits(name: str, device: str) -> None:
    """A device as fast as before changes nothing; one twice as fast saves at most half."""
    graph = graph_of(name)
    same = predict(graph, ["faster"], {"device": device, "factor": "1"})
    assert same.scenarios[0].predicted_ns == pytest.approx(same.replayed_ns, rel=1e-9)
    twice = predict(graph, ["faster"], {"device": device, "factor": "2"}).scenarios[0]
    assert same.replayed_ns / 2 * 0.98 <= twice.predicted_ns <= same.replayed_ns * (1 + 1e-6)


@pytest.mark.parametrize("name", FILES)
def test_more_speed_is_never_slower(name: str) -> None:
    times = [
        predict(graph_of(name), ["faster"], {"device": "gpu", "factor": factor}).scenarios[0].predicted_ns
        for factor in ("1", "2", "8", "1000")
    ]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(times))


def gpu_time(graph: Graph, phase: Phase) -> int:
    tasks = graph.select(kind=TaskKind.GPU, phase=phase)
    return int(graph.column("duration_ns")[tasks.ids].sum())


def test_vgg13_fused_adam() -> None:
    """The update is short against 346 ms of kernels, so fusing it gains at most its own time."""
    graph = graph_of(VGG)
    found = predict(graph, ["fused_optimizer"]).scenarios[0]
    step = graph.info.measured_ns
    update = gpu_time(graph, Phase.OPTIMIZER)
    assert 0 < update < 0.05 * step
    assert step - update <= found.fastest_ns <= found.slowest_ns <= step * 1.001
    saved = step - found.predicted_ns
    assert saved == pytest.approx(update * (1 - 7 / 18), rel=0.5)


def test_vgg13_bf16() -> None:
    """All matrix kernels are tf32 or fp32 and GPU-bound: bf16 gains more than a quarter, and less than twice and a bit."""
    found = predict(graph_of(VGG), ["amp"]).scenarios[0]
    assert found.applied_to["matrix kernels"] >= 45
    assert 1.25 < found.speedup < 2.1
    assert found.low_ns < 0.6 * graph_of(VGG).info.measured_ns
    assert found.high_ns < 0.85 * graph_of(VGG).info.measured_ns


def test_vgg13_gradients_have_the_size_of_the_model() -> None:
    """VGG-13 with 1000 classes has 133,047,848 parameters."""
    found = predict(graph_of(VGG), ["distributed"], {"world_size": "8", "bandwidth": "25GB/s"}).scenarios[0]
    assert any("508 MiB of gradients" in text for text in found.assumptions)


def test_vgg13_more_workers_over_slow_links_scale_worse() -> None:
    def speedup(workers: str, bandwidth: str) -> float:
        settings = {"world_size": workers, "bandwidth": bandwidth}
        return predict(graph_of(VGG), ["distributed"], settings).scenarios[0].speedup

    assert 7 < speedup("8", "100GB/s") <= 8
    assert speedup("8", "1GB/s") < speedup("8", "10GB/s") < speedup("8", "100GB/s")


def test_vgg13_priorities_help_where_the_network_is_slow() -> None:
    settings = {"world_size": "4", "bandwidth": "1GB/s"}
    priority = predict(graph_of(VGG), ["p3"], settings).scenarios[0]
    fifo = predict(graph_of(VGG), ["p3"], {**settings, "order": "fifo"}).scenarios[0]
    assert priority.predicted_ns < 0.95 * fifo.predicted_ns


def test_combination_is_not_the_sum() -> None:
    graph = graph_of(VGG)
    both = predict(graph, ["amp", "fused_optimizer"]).scenarios[0]
    each = [predict(graph, [name]).scenarios[0] for name in ("amp", "fused_optimizer")]
    assert both.name == "amp+fused_optimizer"
    assert both.predicted_ns <= min(found.predicted_ns for found in each)


def test_eight_ranks() -> None:
    report = ranked("param-dlrm-8rank-v100/dlrm_kineto.tar.gz")
    found = {prediction.name: prediction for prediction in report.scenarios}
    assert "no_straggler" in found
    assert found["no_straggler"].applied_to["ranks"] == 8
    assert not [reason for reason in report.not_applicable.values() if "cannot be simulated" in reason]


def test_advice_is_in_the_words_of_the_devices_maker() -> None:
    name = "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz"
    graph = graph_of(name)
    assert "AMD" in graph.info.devices[0].name
    assert "HIP graphs" in predict(graph, ["launch_free"]).scenarios[0].advice
    said = [text for found in ranked(name).scenarios for text in (found.advice, *found.assumptions)]
    said += ranked(name).not_applicable.values()
    assert not [text for text in said if "CUDA graph" in text]
    assert "CUDA graphs" in predict(graph_of(VGG), ["launch_free"]).scenarios[0].advice
