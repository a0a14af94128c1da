"""A kernel that outlasts its step runs beside the steps: their lengths and gains are those of the trace without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.trace.source import sources
from leadline.trace.window import read_window
from leadline.whatif.critical import describe_critical_path
from leadline.whatif.ledger import ledger
from leadline.whatif.load import load
from leadline.whatif.predict import predict

STEPS, STEP_US, CALLS, KERNEL_US = 5, 10_000, 8, 1_000
BEGIN_US = 1_000
LONG_US = 60_000


def span(name: str, category: str, begin_us: float, long_us: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "ts": begin_us, "dur": long_us, "pid": 1, "tid": 100, **more}


def trace(launch_us: float | None, begin_us: float, long_us: float) -> dict[str, Any]:
    """Five steps of 10 ms that each wait for 8 ms of kernels, and one kernel on a stream of its own."""
    events = []
    number = 1
    for step in range(STEPS):
        begin = BEGIN_US + step * STEP_US
        events.append(span(f"ProfilerStep#{step}", "user_annotation", begin, STEP_US))
        for call in range(CALLS):
            at, numbers = begin + call * KERNEL_US + 10, {"correlation": number, "External id": number}
            device = {"pid": 0, "tid": 7, "args": {**numbers, "device": 0, "stream": 7}}
            events.append(span("aten::mm", "cpu_op", at, 100, args={"External id": number}))
            events.append(span("cudaLaunchKernel", "cuda_runtime", at + 5, 10, args=numbers))
            events.append(span("gemm", "kernel", at + 20, KERNEL_US, **device))
            number += 1
        events.append(span("cudaStreamSynchronize", "cuda_runtime", begin + 8200, 1000, args={"correlation": number}))
        number += 1
    if launch_us is not None:
        events.append(span("cudaLaunchKernel", "cuda_runtime", launch_us, 5, args={"correlation": number}))
    if long_us:
        device = {"pid": 0, "tid": 20, "args": {"correlation": number, "device": 0, "stream": 20}}
        events.append(span("persistent", "kernel", begin_us, long_us, **device))
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": events}


def written(folder: Path, *kernel: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(trace(*kernel)))
    return path


LAUNCHED = [
    pytest.param(None, 500, LONG_US, id="launched before the trace, over all steps"),
    pytest.param(400, 500, LONG_US, id="launched before the first step, over all steps"),
    pytest.param(400, 500, 22_000, id="launched before the first step, into the third"),
    pytest.param(1_008, 1_020, 25_000, id="of the first step, into the third"),
    pytest.param(11_008, 11_020, LONG_US, id="of the second step, behind the last"),
    pytest.param(41_008, 41_020, LONG_US, id="of the last step, far behind it"),
    pytest.param(None, 12_000, LONG_US, id="without a launch, begun in the second step"),
]


def test_the_trace_alone_has_steps_of_ten_milliseconds(tmp_path: Path) -> None:
    assert load(written(tmp_path, None, 0, 0)).info.step_ns == pytest.approx([10e6] * STEPS, rel=2e-3)


@pytest.mark.parametrize(("launch_us", "begin_us", "long_us"), LAUNCHED)
def test_steps_keep_their_length(tmp_path: Path, launch_us: float | None, begin_us: float, long_us: float) -> None:
    path = written(tmp_path, launch_us, begin_us, long_us)
    _, found = read_window(sources(path)[0], None)
    assert found.walls_ns == (STEP_US * 1000,) * STEPS
    graph = load(path)
    assert graph.info.step_ns == pytest.approx(found.walls_ns, rel=2e-3)


@pytest.mark.parametrize(("launch_us", "begin_us", "long_us"), LAUNCHED)
def test_gains_are_those_without_it(tmp_path: Path, launch_us: float | None, begin_us: float, long_us: float) -> None:
    """The kernel waits for nothing and nothing waits for it: what a faster device brings to a step is the same."""
    plain = predict(load(written(tmp_path, None, 0, 0)), ["faster"], {"device": "gpu", "factor": "2"}).scenarios[0]
    path = written(tmp_path, launch_us, begin_us, long_us)
    graph = load(path)
    report = predict(graph, ["faster"], {"device": "gpu", "factor": "2"})
    assert report.scenarios[0].speedup == pytest.approx(plain.speedup, rel=1e-3)
    assert report.replayed_ns == pytest.approx(STEP_US * 1000, rel=1e-3)
    assert report.replay is not None
    assert sum(row.spent_ns for row in ledger(graph, report.replay)) == pytest.approx(report.replayed_ns, rel=2e-3)
    assert "persistent" not in describe_critical_path(graph, report)


def test_a_device_that_is_behind_is_beside_nothing(tmp_path: Path) -> None:
    """The CPU launches each step in a tenth of its time: all work belongs to its step."""
    events = []
    for step in range(STEPS):
        begin, number = BEGIN_US + step * 1_000, step + 1
        events.append(span(f"ProfilerStep#{step}", "user_annotation", begin, 1_000))
        events.append(span("aten::mm", "cpu_op", begin + 10, 100, args={"External id": number}))
        numbers = {"correlation": number, "External id": number}
        events.append(span("cudaLaunchKernel", "cuda_runtime", begin + 15, 10, args=numbers))
        device = {"pid": 0, "tid": 7, "args": {**numbers, "device": 0, "stream": 7}}
        events.append(span("gemm", "kernel", BEGIN_US + 100 + step * STEP_US, STEP_US, **device))
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    lengths = load(path).info.step_ns
    assert lengths[1:] == (STEP_US * 1000,) * (STEPS - 1)
    assert lengths == read_window(sources(path)[0], None)[1].walls_ns
