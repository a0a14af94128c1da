"""Programs that start CUDA by themselves, without torch, after measuring has begun: the driver tells of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.eventtools.conftest import rows_of

from leadline.capture.providers.nvidia.files import CUDA_VARIABLE, NVTX_VARIABLE, inject_library, injection_environment
from leadline.profiles import Profile, open_profile
from leadline.report.tools import tool_results

PROGRAM = Path(__file__).with_name("late_cuda_program.py")


def run(tmp_path: Path, what: str, *options: str, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    # As leadline.pth does in an installation, which these tests do not need.
    (tmp_path / "sitecustomize.py").write_text("import leadline._autostart\n")
    search = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "leadline", "run", "-o", str(output), "-q", *options, str(PROGRAM), what]
    variables = {**os.environ, "PYTHONPATH": search, **environment}
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return open_profile(output)


def test_a_program_without_torch_is_measured_from_its_first_kernel(tmp_path: Path, fakes: Path, inject: Path) -> None:
    profile = run(tmp_path, "launch", FAKES=str(fakes), CUDA_INJECTION64_PATH=str(inject))
    (kernel,) = profile.tree.find(kind="kernel")
    assert kernel.name == "gemm(float*)"
    assert (kernel.exclusive("gpu_time").count, kernel.exclusive("gpu_time").sum) == (3, 150_000)
    names = [step.name for step in kernel.path()]
    assert "train" in names and names[-2] == "cuLaunchKernel"
    assert [device.name for device in profile.devices] == ["NVIDIA H200 (fake)"]
    assert profile.meta["processes"][0]["available"]["nvidia"]["ok"] is True
    assert [loss for loss in profile.losses if loss.count > 0] == []


def test_a_tool_counts_the_kernels_that_cupti_reports(tmp_path: Path, fakes: Path, inject: Path) -> None:
    asked = ("--tool", "kernel_frequency", "--backend", "kernels")
    profile = run(tmp_path, "launch", *asked, FAKES=str(fakes), CUDA_INJECTION64_PATH=str(inject))
    (result,) = tool_results(profile, "kernel_frequency")
    (row,) = rows_of(result.found)
    assert (row["kernel"], row["launches"], row["time"]) == ("gemm(float*)", 3, 150_000)


def test_a_program_that_makes_no_context_has_no_device_in_its_profile(
    tmp_path: Path, fakes: Path, inject: Path
) -> None:
    profile = run(tmp_path, "look", FAKES=str(fakes), CUDA_INJECTION64_PATH=str(inject))
    assert list(profile.tree.find(kind="kernel")) == []
    assert [loss for loss in profile.losses if loss.count > 0] == []


def test_without_the_driver_s_word_the_profile_says_what_is_missing(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, "launch", FAKES=str(fakes), CUDA_INJECTION64_PATH="/other/tool.so")
    assert list(profile.tree.find(kind="kernel")) == []
    (loss,) = [loss for loss in profile.losses if loss.count > 0]
    assert loss.kind.name == "PROVIDER_UNAVAILABLE" and CUDA_VARIABLE in loss.detail


def test_the_launcher_names_our_library_where_the_user_names_none() -> None:
    library = inject_library()
    assert library is not None, "this installation has no library for NVTX and the driver"
    assert injection_environment({}) == {NVTX_VARIABLE: str(library), CUDA_VARIABLE: str(library)}
    assert CUDA_VARIABLE not in injection_environment({CUDA_VARIABLE: "/other/tool.so"})
    assert NVTX_VARIABLE not in injection_environment({NVTX_VARIABLE: "/other/tool.so"})
