"""ROCm before 6.2, which has roctracer and no rocprofiler-sdk: over a fake of it, and its older roctx."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.amd import fake_gpu
from tests.truth.invariants import contradictions

from leadline.profiles import Profile, open_profile
from leadline.schema import LossKind


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Path:
    """A folder with what such a ROCm has."""
    folder = tmp_path_factory.mktemp("rocm61")
    for file in fakes.glob("*.so.*"):
        if "rocprofiler" not in file.name:
            shutil.copy2(file, folder / file.name)
    return folder


def run(folder: Path, older: Path, **environment: str) -> Profile:
    output = folder / "out.leadline"
    status, said = fake_gpu.run_program(output, older, OLDER_ROCTX="1", **environment)
    assert status == 0, said
    return open_profile(output)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory, older: Path) -> Profile:
    return run(tmp_path_factory.mktemp("traced"), older)


def unavailable(profile: Profile) -> str:
    return " ".join(one.detail for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE)


def test_kernels_and_copies_hang_under_the_line_that_asked_for_them(profile: Profile) -> None:
    gemm = next(node for node in profile.tree.find(kind="kernel") if node.name == "gemm(float*)")
    path = [step.name for step in gemm.path() if step.kind not in ("root", "process", "thread")]
    assert gemm.exclusive("gpu_time").count == 3 and gemm.exclusive("gpu_time").sum == 150_000
    assert path[-2:] == ["hipLaunchKernel", "gemm(float*)"] and path.index("step") < path.index("forward")
    assert gemm.exclusive("launch_latency").min > 0
    copies = {node.name: node.exclusive("copy_bytes").sum for node in profile.tree.find(kind="copy")}
    assert sorted(copies.values()) == [4096, 1 << 20]
    assert {name.split()[1] for name in copies} == {"HtoD", "DtoH"}
    assert sum(node.exclusive("sync_time").count for node in profile.tree.walk()) == 1
    assert sum(node.exclusive("device_alloc_bytes").sum for node in profile.tree.walk()) == 1 << 20
    assert contradictions(profile) == []


def test_copies_say_whether_the_host_s_memory_was_locked(tmp_path: Path, older: Path) -> None:
    profile = run(tmp_path, older, HOST="1")
    copies = {node.name: node.exclusive("copy_bytes").sum for node in profile.tree.find(kind="copy")}
    assert copies["Memcpy HtoD (Pinned -> Device)"] == copies["Memcpy HtoD (Pageable -> Device)"] == 1000


def test_the_device_is_what_hip_says_of_it(profile: Profile) -> None:
    (device,) = profile.devices
    assert device.name == "AMD Instinct MI300X (fake)" and device.detail["wavefront"] == 64
    assert device.detail["compute_units"] == 304 and device.detail["busy_ns"] > 180_000
    assert device.memory_bytes == 192 << 30


def test_what_is_missing_is_said_and_nothing_is_made_up(profile: Profile) -> None:
    told = profile.meta["processes"][0]["available"]["amd"]
    assert told["ok"] is True and told["version"] == "4.1" and told["details"]["source"] == "roctracer"
    said = unavailable(profile)
    assert said.startswith("This ROCm has no rocprofiler-sdk") and "grids, registers" in said
    (gemm,) = (node for node in profile.tree.find(kind="kernel") if node.name == "gemm(float*)")
    assert gemm.exclusive("registers").count == gemm.exclusive("grid_blocks").count == 0
    assert {one.kind for one in profile.losses if one.count > 0} == {LossKind.PROVIDER_UNAVAILABLE}


def test_rocprof_as_parent_is_named(tmp_path: Path, older: Path) -> None:
    profile = run(tmp_path, older, HSA_TOOLS_LIB="/opt/rocm/lib/roctracer/libroctracer_tool.so")
    assert [*profile.tree.find(kind="kernel")] == []
    assert "rocprof measures this program" in unavailable(profile)


def test_ranges_of_the_older_roctx_are_seen_beside_rocprofiler_sdk(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    assert profile.meta["processes"][0]["available"]["amd"]["details"]["source"] == "rocprofiler-sdk"
    gemm = next(node for node in profile.tree.find(kind="kernel") if node.name == "gemm(float*)")
    assert "step" in [step.name for step in gemm.path()]
    assert unavailable(profile) == ""
