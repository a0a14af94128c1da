"""A whole profile of a program that uses a (fake) GPU: Python line, region, call, kernel; and what happens when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.nvidia import fake_gpu
from tests.truth.invariants import contradictions

from leadline.analysis import Analysis
from leadline.profiles import Profile, open_profile
from leadline.schema import EventKind, LossKind


def run(tmp_path: Path, fakes: Path, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, **environment)
    assert status == 0, said
    return open_profile(output)


def kernels(profile: Profile) -> dict[tuple[str, ...], tuple[int, int]]:
    """Path of names below the process, to (count, gpu_time)."""
    found = {}
    for node in profile.tree.find(kind="kernel"):
        path = tuple(step.name for step in node.path() if step.kind not in ("root", "process", "thread"))
        time = node.exclusive("gpu_time")
        found[path] = (time.count, time.sum)
    return found


@pytest.mark.parametrize("version", ["130001", "130500"])
def test_kernels_hang_under_the_line_that_launched_them(tmp_path: Path, fakes: Path, version: str) -> None:
    profile = run(tmp_path, fakes, FAKE_CUPTI=version)
    found = kernels(profile)
    ends = {path[-1]: value for path, value in found.items()}
    assert ends == {"gemm(float*)": (3, 150_000), "relu": (3, 30_000)}
    for path in found:
        assert path[-2] == "cuLaunchKernel"
        assert "layer" in path and "train" in path and "launch" in path
        assert (
            path.index("layer") < path.index("train") < path.index("launch")
        )  # a region stands above the frame that opened it
    line = next(node for node in profile.tree.find(kind="kernel") if node.name == "relu").parent
    launched_at = line.parent if line is not None else None
    assert launched_at is not None and launched_at.file.endswith("fake_program.py")
    assert [loss for loss in profile.losses if loss.count > 0] == []


def test_the_device_and_its_busy_time_are_in_the_file(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    (device,) = profile.devices
    assert device.name == "NVIDIA H200 (fake)"
    assert device.detail["compute_capability"] == "9.0"
    assert device.detail["busy_ns"] == 180_000
    assert device.detail["communication_ns"] == 0
    available = profile.meta["processes"][0]["available"]["nvidia"]
    assert available["ok"] is True
    assert available["details"]["records"] >= 6
    assert 0 < available["details"]["clock_uncertainty_ns"] < 10_000_000
    assert available["details"]["cupti_finalized"] is True


def test_all_idle_time_is_on_the_tree(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    idle = sum(node.exclusive("gpu_idle_time").sum for node in profile.tree.walk())
    assert idle == profile.devices[0].detail["idle_ns"] > 0


def test_a_trace_window_joins_kernels_with_their_calls(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, TRACE="seconds=60,wait=0")
    events = profile.table("events")
    kernel = events["kind"] == int(EventKind.KERNEL)
    assert kernel.sum() == 6
    assert (events["thread"][kernel] == -1).all() and (events["device"][kernel] == 0).all()
    assert sorted(set(events["duration_ns"][kernel])) == [10_000, 50_000]
    calls = events["kind"] == int(EventKind.API)
    began = dict(zip(events["correlation"][calls], events["start_ns"][calls], strict=True))
    for correlation, start in zip(events["correlation"][kernel], events["start_ns"][kernel], strict=True):
        assert 0 < start - began[correlation] < 1_000_000_000
    assert (events["kind"] == int(EventKind.SYNCHRONIZE)).sum() == 1
    assert {profile.tree.node(int(row)).name for row in events["node"][kernel]} == {"gemm(float*)", "relu"}


def test_a_rest_loses_what_was_launched_in_it_and_nothing_else(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, PAUSE="1")
    found = kernels(profile)
    counts: dict[str, tuple[int, int]] = {}
    for path, (count, time) in found.items():
        before = counts.get(path[-1], (0, 0))
        counts[path[-1]] = (before[0] + count, before[1] + time)
        assert "rest" not in path and "launched before measuring began" not in path
    assert counts == {"gemm(float*)": (3, 150_000), "relu": (4, 40_000)}
    assert sum("after" in path for path in found) == 1
    assert [loss for loss in profile.losses if loss.count > 0] == []
    idle = sum(node.exclusive("gpu_idle_time").sum for node in profile.tree.walk())
    assert idle == profile.devices[0].detail["idle_ns"] > 0


def test_launch_numbers(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    gemm = next(node for node in profile.tree.find(kind="kernel") if node.name == "gemm(float*)")
    assert gemm.exclusive("grid_blocks").max == 132
    assert gemm.exclusive("block_threads").max == 256
    assert gemm.exclusive("registers").max == 64
    assert gemm.exclusive("occupancy").max == 500_000  # 64 registers: 1024 of 2048 threads
    assert gemm.exclusive("launch_latency").min > 0
    waiting = next(node for node in profile.tree.find(name="cudaDeviceSynchronize"))
    assert waiting.exclusive("sync_time").count <= 1


@pytest.mark.parametrize("way", ["spins", "sleeps"])
def test_a_wait_for_the_device_spins_or_sleeps_and_the_split_knows(tmp_path: Path, fakes: Path, way: str) -> None:
    """The fake driver waits for 200 ms of work one way or the other and says what CPU time its waits took."""
    output = tmp_path / "out.leadline"
    chosen = {"FAKE_SLEEPS": "1"} if way == "sleeps" else {}
    status, said = fake_gpu.run_program(output, fakes, WAIT_NS="200000000", **chosen)
    assert status == 0, said
    ran = int(said.split()[-1])
    profile = open_profile(output)
    (waiting,) = profile.tree.find(name="cudaDeviceSynchronize")
    measured, waited = waiting.exclusive("sync_running_time"), waiting.exclusive("sync_time").sum
    assert measured.count == 1 and waited > 0
    assert ran <= measured.sum <= ran + 5_000_000  # what the call and our two readings took beside the wait itself
    (split,) = [split for split in Analysis(profile).time_splits if split.main]
    assert split.spun_ns == min(measured.sum, waited)
    assert split.parts_ns["device_wait"] == waited
    assert contradictions(profile) == []
    if way == "sleeps":  # what slept is not taken from the CPU time that Python used
        thread = profile.threads[split.thread]
        other = sum(split.parts_ns[name] for name in ("operators", "data", "communication", "compile", "other_wait"))
        assert split.parts_ns["python"] >= min(thread.cpu_ns - measured.sum, thread.wall_ns - waited - other)


def test_a_held_cupti_is_named_and_regions_are_timed_instead(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, HOLDER="Nsight Systems")
    (loss,) = [loss for loss in profile.losses if loss.count > 0]
    assert loss.kind is LossKind.PROVIDER_UNAVAILABLE
    assert '"Nsight Systems" holds CUPTI' in loss.detail
    timed = [node for node in profile.tree.walk() if node.name == "default stream (CUDA events)"]
    assert sum(node.exclusive("gpu_time").count for node in timed) == 3
    available = profile.meta["processes"][0]["available"]["nvidia"]
    assert available["ok"] is False and available["details"]["holder"] == "Nsight Systems"


def test_a_cupti_that_is_missing_or_of_another_driver_is_said(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, CUPTI="0", CUDA_HOME=str(tmp_path))
    (loss,) = [loss for loss in profile.losses if loss.count > 0]
    # A machine may have a real CUPTI, which does not start with a fake driver.
    assert loss.detail.startswith("GPU work is not measured because CUPTI")
    assert "was not found" in loss.detail or "does not start with this driver" in loss.detail
    assert "nvidia-cuda-cupti" in loss.detail


def test_a_program_without_cuda_is_not_touched(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import leadline, sys\nwith leadline.profile(sys.argv[1], quiet=True):\n    pass\n")
    output = tmp_path / "plain.leadline"
    subprocess.run([sys.executable, str(script), str(output)], check=True)
    profile = open_profile(output)
    assert profile.meta["processes"][0]["available"]["nvidia"]["ok"] is None
    assert list(profile.devices) == [] and np.all([loss.count == 0 for loss in profile.losses])
