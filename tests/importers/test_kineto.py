"""`leadline import` of Kineto traces: a drawn trace with a known tree, real ones of torch, and those that others made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.truth.invariants import contradictions

import leadline
from leadline.profiles import open_profile
from leadline.profiles.draw import draw
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

PID = 4711


def span(category: str, name: str, begin: float, end: float, thread: int = PID, **arguments: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": PID, "tid": thread, "ts": begin, "dur": end - begin,
        "args": arguments,
    }  # fmt: skip


def kernel(
    name: str, begin: float, end: float, correlation: int, category: str = "kernel", **more: Any
) -> dict[str, Any]:
    arguments = {"device": 0, "stream": 7, "correlation": correlation, **more}
    return {**span(category, name, begin, end, **arguments), "pid": 0, "tid": 7}


STEP = [
    span("user_annotation", "ProfilerStep#3", 0, 100),
    span("python_function", "train.py(10): step", 1, 99),
    span("python_function", "torch/nn/modules/module.py(1700): _call_impl", 2, 30),
    span("python_function", "nn.Module: Net_0", 3, 29),
    span("python_function", "nn.Module: Linear_1", 4, 28),
    span("python_function", "<built-in function linear>", 5, 27),
    span("cpu_op", "aten::linear", 6, 26, **{"Sequence number": 12}),
    span("cpu_op", "aten::addmm", 10, 20, **{"Sequence number": 12}),
    span("cuda_runtime", "cudaLaunchKernel", 12, 14, correlation=501),
    kernel("gemm", 15, 25, 501, grid=[2, 3, 1], block=[128, 1, 1], **{"registers per thread": 32}),
    span("python_function", "torch/_tensor.py(600): backward", 40, 80),
    span("python_function", "<built-in method run_backward of Engine object at 0x7f00>", 41, 79),
    span("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 50, 60, 99,
         **{"Sequence number": 12, "Fwd thread id": 1}),
    span("cpu_op", "AddmmBackward0", 51, 59, 99, **{"Sequence number": 12, "Fwd thread id": 1}),
    span("cuda_runtime", "cudaLaunchKernel", 52, 53, 99, correlation=502),
    kernel("gemm_backward", 55, 70, 502),
    span("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 61, 65, 99),
    span("cuda_runtime", "cudaDeviceSynchronize", 85, 95, correlation=503),
    kernel("Memcpy DtoH (Device -> Pageable)", 96, 98, 777, "gpu_memcpy", bytes=64),
]  # fmt: skip
TREE = """\
process step.json
  thread main
    python step @ train.py:10
      python _call_impl @ site-packages/torch/nn/modules/module.py:1700
        phase forward
          module Net_0 [Net]
            module Net_0.Linear_1 [Linear]
              operator aten::linear
                operator aten::addmm
                  api cudaLaunchKernel
                    kernel gemm
                  phase backward
                    operator autograd::engine::evaluate_function: AddmmBackward0
                      operator AddmmBackward0
                        api cudaLaunchKernel
                          kernel gemm_backward
      python backward @ site-packages/torch/_tensor.py:600
        phase on another thread
          operator autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
      api cudaDeviceSynchronize
  thread thread 99
  copy Memcpy DtoH (Device -> Pageable)
"""


def write(folder: Path, events: list[dict[str, Any]], name: str = "step.json", **header: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path


def values(profile: leadline.Profile, metric: str, **found: str) -> list[int]:
    return [int(node.exclusive(metric).sum) for node in profile.tree.find(**found)]


def test_a_drawn_trace_gives_the_known_tree(tmp_path: Path) -> None:
    profile = import_traces([write(tmp_path, STEP)])
    assert contradictions(profile) == []
    assert draw(profile) == TREE
    times = {name: values(profile, "time", kind="operator", name=name)[0] for name in ("aten::linear", "aten::addmm")}
    assert times == {"aten::linear": 10_000, "aten::addmm": 8_000}
    assert values(profile, "gpu_time", kind="kernel", name="gemm") == [10_000]
    assert values(profile, "grid_blocks", kind="kernel", name="gemm") == [6]
    assert values(profile, "launch_latency", kind="kernel", name="gemm") == [3_000]
    assert values(profile, "gpu_idle_time", kind="kernel", name="gemm_backward") == [30_000]
    assert values(profile, "sync_time", kind="api", name="cudaDeviceSynchronize") == [10_000]
    (copy,) = profile.tree.find(kind="copy")
    assert copy.parent.kind == "process" and copy.exclusive("copy_bytes").sum == 64
    assert [(str(loss.kind), loss.count) for loss in profile.losses] == [("gpu_record_unattributed", 1)]
    assert profile.window.steps == (3,)
    (device,) = profile.devices
    assert (device.detail["busy_ns"], device.detail["idle_ns"]) == (27_000, 56_000)


def test_times_of_a_drawn_trace_add_up(tmp_path: Path) -> None:
    profile = import_traces([write(tmp_path, STEP)])
    main, helper = profile.threads
    assert (main.name, main.tid, main.operator_ns, main.wall_ns) == ("main", PID, 20_000, 100_000)
    assert helper.operator_ns == 14_000
    # another thread ran the backward pass for 14 us in which the loop's had nothing open
    assert main.cpu_ns == 86_000


def test_a_backward_operator_without_forward_is_counted(tmp_path: Path) -> None:
    alone = [
        span(
            "cpu_op",
            "autograd::engine::evaluate_function: XBackward0",
            0,
            5,
            **{"Sequence number": 3, "Fwd thread id": 1},
        )
    ]
    profile = import_traces([write(tmp_path, alone)])
    assert [(str(loss.kind), loss.count) for loss in profile.losses] == [("backward_without_forward", 1)]


def test_arrows_tell_threads_apart_that_count_alike(tmp_path: Path) -> None:
    """Sequence numbers count up in each thread: two replicas have the same."""
    events = []
    for thread, begin in ((1, 0.0), (2, 1.0)):
        events.append(span("cpu_op", f"aten::op{thread}", begin, begin + 0.5, thread, **{"Sequence number": 7}))
        late = 20 + begin * 5
        events.append(
            span("cpu_op", "autograd::engine::evaluate_function: OpBackward0", late, late + 2, 9,
                 **{"Sequence number": 7, "Fwd thread id": thread})
        )  # fmt: skip
        for phase, at, where in (("s", begin, thread), ("f", late, 9)):
            events.append(
                {
                    "ph": phase,
                    "cat": "fwdbwd",
                    "name": "fwdbwd",
                    "id": thread,
                    "pid": PID,
                    "tid": where,
                    "ts": at,
                    "bp": "e",
                }
            )
    profile = import_traces([write(tmp_path, events)])
    for thread in (1, 2):
        (node,) = profile.tree.find(kind="operator", name=f"aten::op{thread}")
        assert [child.name for child in node.children] == ["backward"]


def test_ranks_become_one_profile(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path, STEP, f"rank{rank}.json", distributedInfo={"rank": rank, "world_size": 2})
    profile = import_traces([tmp_path])
    assert sorted(process.rank for process in profile.processes) == [0, 1]
    assert contradictions(profile) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "in no format that can be imported"),
        ("{}", "no traceEvents"),
        ('{"traceEvents": []}', "holds no operator, API call or kernel"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op"}]}', "holds no operator"),
        ("", "in no format that can be imported"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=sentence):
        import_traces([path])


def test_every_verb_opens_a_trace(tmp_path: Path) -> None:
    path = write(tmp_path, STEP)
    for command in (
        ["report", str(path)],
        ["query", str(path), "kernel:*"],
        ["import", str(path), "-o", str(tmp_path / "o.leadline")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "leadline", *command], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "gemm" in done.stdout or command[0] == "import"
    assert contradictions(open_profile(tmp_path / "o.leadline")) == []
    (tmp_path / "no.txt").write_text("text")
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "report", str(tmp_path / "no.txt")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_counts_and_times_of_a_real_run_are_those_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here")
    from torch.profiler import ProfilerActivity, profile, schedule

    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "trace.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=lambda one: one.export_chrome_trace(str(path)),
        with_stack=True,
        record_shapes=True,
    ) as recorder:
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,))).backward()
            optimizer.step()
            recorder.step()
    found = import_traces([path])
    assert contradictions(found) == []
    assert found.window.steps == (2, 3, 4)
    truth = {row.key: row.count for row in recorder.key_averages() if row.key.startswith("aten::")}
    counts = {
        name: sum(int(node.exclusive("call_time").count) for node in found.tree.find(kind="operator", name=name))
        for name in truth
    }
    assert counts == truth
    (linear, *_) = found.tree.find(kind="operator", name="aten::linear")
    above = linear.path()
    assert any(frame.kind == "module" and frame.module == "Linear" for frame in above)
    assert any(frame.file.endswith("test_kineto.py") for frame in above)
    assert any(
        frame.name == "backward" and frame.kind == "phase"
        for node in found.tree.find(kind="operator", name="AddmmBackward0")
        for frame in node.path()
    )
    assert not [loss for loss in found.losses if str(loss.kind) == "backward_without_forward"]
    assert np.unique(found.events["step"]).tolist()[-3:] == [2, 3, 4]


@pytest.mark.parametrize(("threads", "found"), [(32, True), (256, False)])
def test_rocms_dialect_says_the_shape_of_a_launch_at_the_call(tmp_path: Path, threads: int, found: bool) -> None:
    """The case of DeepContext's paper: an instance norm whose blocks were chosen for warps of 32, on a device of 64."""
    shape = {"block": [threads, 1, 1], "grid": [1, 40, 1], "shared memory": 16}
    steps = []
    for number in range(3):
        at = 1000 * number
        steps += [
            span("user_annotation", f"ProfilerStep#{number}", at, at + 900),
            span("python_function", "train.py(10): step", at + 5, at + 890),
            span("cpu_op", "aten::instance_norm", at + 10, at + 90),
            span("cuda_runtime", "hipLaunchKernel", at + 20, at + 30, correlation=10 * number + 1, **shape),
            kernel("instance_norm", at + 40, at + 700, 10 * number + 1, kind="Dispatch Kernel"),
            span("cuda_runtime", "hipExtModuleLaunchKernel", at + 50, at + 55, correlation=10 * number + 2, **shape),
            kernel("igemm", at + 710, at + 760, 10 * number + 2, kind="Dispatch Kernel"),
        ]
    device = {"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64, "numSms": 304}
    profile = import_traces([write(tmp_path, steps, deviceProperties=[device])])
    assert contradictions(profile) == []
    assert set(values(profile, "block_threads", kind="kernel", name="instance_norm")) == {3 * threads}
    assert set(values(profile, "grid_blocks", kind="kernel", name="instance_norm")) == {120}
    assert set(values(profile, "grid_blocks", kind="kernel", name="igemm")) == {0}  # there it is of work-items
    assert profile.devices[0].detail["wavefront"] == 64
    titles = [one.title for one in profile.findings() if one.rule == "block_shape"]
    assert any("50 % of the wavefronts' lanes empty" in title for title in titles) == found


def test_work_of_a_captured_graph_is_numbered_in_its_launch(tmp_path: Path) -> None:
    """Two launches of a graph of three kernels on two streams, and a kernel that is launched by itself."""
    events: list[dict[str, Any]] = []
    for number, at in ((700, 100.0), (701, 200.0)):
        events.append(span("cuda_runtime", "cudaGraphLaunch", at, at + 5, correlation=number))
        events += [
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": at + begin, "dur": 5,
             "args": {"device": 0, "stream": stream, "correlation": number}}
            for name, begin, stream in (("one", 10, 7), ("three", 30, 9), ("two", 20, 8))
        ]  # fmt: skip
    events.append(span("cuda_runtime", "cudaLaunchKernel", 300, 305, correlation=702))
    events.append(
        {"ph": "X", "cat": "kernel", "name": "alone", "pid": 0, "tid": 7, "ts": 310, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": 702}}
    )  # fmt: skip
    profile = leadline.open(write(tmp_path, events))
    found = profile.events
    names = [profile.tree.node(int(node)).name for node in found["node"].tolist()]
    numbers = [(name, int(number)) for name, number in zip(names, found["graph_node"].tolist(), strict=True)]
    assert [one for one in numbers if one[1]] == [("one", 1), ("two", 2), ("three", 3)] * 2
    assert ("alone", 0) in numbers
