"""The same run by Leadline and as Kineto's ROCm dialect would have it: the same answers.

The dialect is written from the raw stream of calls and records that the provider can keep, with the words of the real
MI300 trace: HIP's calls as `cuda_runtime` with grid and block, kernels by mangled names, `hip` versions in the head.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.amd import fake_gpu
from tests.truth.invariants import contradictions

from leadline.analysis.analyze import analyze
from leadline.profiles import Profile, open_profile
from leadline.trace.importers import import_traces

STEPS = 12
DIRECTIONS = {1: "HtoD (Host -> Device)", 2: "DtoH (Device -> Host)"}


def dialect(recording: Path) -> dict[str, Any]:
    """What torch.profiler on ROCm would have written of a recorded stream."""
    calls: dict[int, dict[str, Any]] = {}
    device_work: list[dict[str, Any]] = []
    for line in recording.read_text().splitlines():
        kind, *words = line.split(" ")
        if kind == "b":
            calls[int(words[3])] = {"name": words[5], "begin": int(words[1])}
        elif kind == "e":
            calls[int(words[2])]["end"] = int(words[1])
        elif kind == "w":
            what, correlation, begin, end, device, stream = map(int, words[:6])
            size, direction, blocks, threads = int(words[8]), int(words[9]), int(words[13]), int(words[14])
            shape = {"grid": [blocks, 1, 1], "block": [threads, 1, 1]}
            about = {"device": device, "stream": stream, "correlation": correlation}
            if what == 0:
                calls[correlation]["shape"] = shape
                about |= {"kind": "Dispatch Kernel"}
            else:
                about |= {"bytes": size, "kind": "HostToDevice" if direction == 1 else "DeviceToHost"}
            name = words[-1] if what == 0 else f"Memcpy {DIRECTIONS[direction]}"
            category = "kernel" if what == 0 else "gpu_memcpy"
            device_work.append(span(category, name, begin, end, about, process=0, thread=stream))
    made = [
        span("cuda_runtime", call["name"], call["begin"], call["end"], {"correlation": number, **call.get("shape", {})})
        for number, call in calls.items()
    ]
    made += [
        span("python_function", "fake_gpu.py(98): launch", call["begin"] - 50, call["end"] + 50, {})
        for call in calls.values()
        if call["name"] == "hipLaunchKernel"
    ]
    launches = [call for call in calls.values() if call["name"] == "hipLaunchKernel"]
    for step in range(STEPS):  # of two launches each
        first, last = launches[2 * step], launches[2 * step + 1]
        made.append(span("user_annotation", f"ProfilerStep#{step}", first["begin"] - 100, last["end"] + 100, {}))
        made.append(span("cpu_op", "aten::mm", first["begin"] - 20, first["end"] + 20, {}))
    properties = {"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64, "numSms": 304}
    head = {"schemaVersion": 1, "roctracer_version": 4.1, "hip_runtime_version": 60443483}
    return {**head, "deviceProperties": [properties], "traceEvents": [*made, *device_work]}


def span(
    category: str, name: str, begin: int, end: int, about: dict[str, Any], process: int = 100, thread: int = 100
) -> dict[str, Any]:
    at = {"pid": process, "tid": thread, "ts": begin / 1e3, "dur": (end - begin) / 1e3}
    return {"ph": "X", "cat": category, "name": name, **at, "args": about}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> tuple[Profile, Profile]:
    """Measured by Leadline, and as Kineto tells the same run."""
    folder = tmp_path_factory.mktemp("kineto")
    output, recording, trace = folder / "out.leadline", folder / "recording", folder / "trace.json"
    environment = {"BLOCK": "32", "STEPS": str(STEPS), "LEADLINE_GPU_RECORDING": str(recording)}
    status, said = fake_gpu.run_program(output, fakes, **environment)
    assert status == 0, said
    trace.write_text(json.dumps(dialect(recording)))
    return open_profile(output), import_traces([trace])


def test_device_work_is_the_same_by_name_time_call_and_shape(both: tuple[Profile, Profile]) -> None:
    def answers(profile: Profile) -> dict[str, tuple[object, ...]]:
        found = {}
        for kind in ("kernel", "copy"):
            for node in profile.tree.find(kind=kind):
                time, call = node.exclusive("gpu_time"), node.parent.name if node.parent is not None else ""
                metrics = ("copy_bytes", "block_threads", "grid_blocks")
                found[node.name] = (time.count, round(time.sum, -2), call, *(node.exclusive(m).sum for m in metrics))
        return found

    ours, theirs = map(answers, both)
    assert ours == theirs and ours["gemm(float*)"][:3] == (STEPS, 50_000 * STEPS, "hipLaunchKernel")
    assert contradictions(both[1]) == []


def test_the_finding_and_the_device_s_busy_time_are_the_same(both: tuple[Profile, Profile]) -> None:
    # The share that follows in a title is of the steps, which a trace marks and the run itself did not.
    titles = [[one.title.split(" in kernels")[0] for one in analyze(profile, ["block_shape"])] for profile in both]
    assert titles[0] == titles[1] == ["Blocks of 32 threads leave 50 % of the wavefronts' lanes empty"]
    busy = [profile.devices[0].detail["busy_ns"] for profile in both]
    assert busy[0] == pytest.approx(busy[1], rel=1e-3)
