"""Real traces that this project did not write: classes of all their device work, and wall time that adds up."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from leadline.analysis.tracework import device_walls, device_work
from leadline.cli.main import main
from leadline.steps.of_events import find_steps
from leadline.trace.kineto import read_kineto
from leadline.trace.source import Source, sources
from leadline.work.operators import CLASSES

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
PLACES = (
    "hta/alexnet_cuda_sync.json.gz", "hta/cuda_event_sync.json.gz", "hta/cuda_event_sync_multi_stream.json.gz",
    "hta/nccl_data.json.gz", "hta/rank0_of16_cudagraph.json.gz", "param-dlrm-8rank-v100/dlrm_kineto.tar.gz",
    "param-linear-2080ti/linear_kineto.json.gz", "param-resnet-2080ti/resnet_kineto.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz", "triosim-vgg13-h100/profiler_vgg13-iter41.json",
)  # fmt: skip


def opened(place: str) -> list[Source]:
    if not (TRACES / place).exists():
        pytest.skip("the reference traces are not beside the repository")
    return sources(TRACES / place)


def shares(source: Source) -> tuple[Counter[str], int]:
    """Device time per class in percent, and all of it in nanoseconds."""
    trace = read_kineto(source)
    work = device_work(trace)
    length = trace.events["duration_ns"][work.event]
    found: Counter[str] = Counter()
    for number, duration in zip(work.found.tolist(), length.tolist(), strict=True):
        found[CLASSES[number]] += duration
    assert sum(found.values()) == int(length.sum()), "each event has one class"
    return Counter({name: 100 * time / int(length.sum()) for name, time in found.items()}), int(length.sum())


@pytest.mark.parametrize("place", PLACES)
def test_parts_add_up_on_every_device_and_little_is_unknown(place: str) -> None:
    for source in opened(place):
        trace = read_kineto(source)
        walls = device_walls(trace, find_steps(trace).steps, device_work(trace))
        assert walls
        for wall in walls.values():
            parts = (wall.compute_ns, wall.exposed_communication_ns, wall.exposed_copy_ns, wall.idle_ns)
            assert min(parts) >= 0
            assert sum(parts) == wall.window_ns
            assert wall.overlapped_ns <= min(wall.compute_ns, wall.communication_ns)
        percent, total_ns = shares(source)
        assert percent["unknown"] + percent["other"] < 0.5 or total_ns < 200_000, percent  # a toy of one spin kernel


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        # names alone say 12.9 % convolution, 12.0 % matrix product
        ("hta/nccl_data.json.gz", {"convolution": 34.0, "communication": 28.4, "normalisation": 19.0, "matrix product": 0.1}),
        # `volta_sgemm` runs the convolutions here
        ("param-resnet-2080ti/resnet_kineto.json.gz", {"convolution": 58.4, "normalisation": 13.8, "matrix product": 0.0}),
        ("triosim-vgg13-h100/profiler_vgg13-iter41.json", {"convolution": 62.2, "matrix product": 2.1}),
        ("tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz", {"communication": 71.4, "normalisation": 8.6}),
        ("hta/rank0_of16_cudagraph.json.gz", {"communication": 42.3, "matrix product": 26.6, "optimizer": 8.5}),
        ("param-linear-2080ti/linear_kineto.json.gz", {"matrix product": 77.0, "optimizer": 5.5}),
    ],
)  # fmt: skip
def test_classes_of_real_work(place: str, expected: dict[str, float]) -> None:
    (source,) = opened(place)
    percent, _ = shares(source)
    assert {name: round(percent[name], 1) for name in expected} == expected


def test_the_wall_of_a_trace_that_was_counted_by_hand_elsewhere() -> None:
    (source,) = opened("hta/nccl_data.json.gz")
    trace = read_kineto(source)
    (wall,) = device_walls(trace, find_steps(trace).steps, device_work(trace)).values()
    found = (wall.window_ns, wall.compute_ns, wall.overlapped_ns, wall.exposed_communication_ns, wall.exposed_copy_ns)
    assert [round(part / 1e6, 3) for part in found] == [667.226, 115.656, 7.317, 39.559, 2.285]


def test_the_verb_prints_a_page_per_rank(tmp_path: Path, capsys) -> None:
    place = tmp_path / "trace.json"
    call = {"ph": "X", "pid": 1, "tid": 1, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 2}
    place.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "name": "ProfilerStep#4", "ts": 0, "dur": 100},
        {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "aten::cudnn_convolution", "ts": 10, "dur": 20},
        {**call, "ts": 12, "args": {"correlation": 1}},
        {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "volta_sgemm", "ts": 20, "dur": 60,
         "args": {"correlation": 1, "device": 0, "stream": 7}},
        {"ph": "X", "pid": 0, "tid": 9, "cat": "kernel", "name": "ncclKernel_AllReduce(ncclDevComm*)", "ts": 70, "dur": 30,
         "args": {"correlation": 2, "device": 0, "stream": 9}},
    ]}))  # fmt: skip
    assert main(["summary", str(place), "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    ((_, wall),) = page["walls"]
    assert (wall["compute_ns"], wall["overlapped_ns"], wall["exposed_communication_ns"]) == (60_000, 10_000, 20_000)
    assert {share["name"]: share["time_ns"] for share in page["shares"]} == {
        "convolution": 60_000,
        "communication": 30_000,
    }
    assert main(["summary", str(place)]) == 0
    assert "## Summary of `trace.json`" in capsys.readouterr().out
    assert main(["summary", str(tmp_path / "none.json")]) == 2
    assert "cannot be opened" in capsys.readouterr().err
