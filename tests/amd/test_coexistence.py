"""Other tools in the same process: rocprofv3 as parent, torch.profiler with roctracer, which serves one tool at a time."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.amd import fake_gpu
from tests.amd.test_roctracer import older  # noqa: F401

from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.schema import LossKind


def kernels(profile: Profile) -> dict[str, int]:
    return {node.name: node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel")}


@pytest.mark.parametrize("end", ["", ":"])
def test_the_tool_of_rocprofv3_goes_on_beside_leadline(tmp_path: Path, fakes: Path, end: str) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None  # the fakes were built with it
    library, notes = tmp_path / "librocprofiler-sdk-tool.so", tmp_path / "notes"
    source = Path(__file__).with_name("other_tool.cpp")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=100)
    output = tmp_path / "out.leadline"
    named = {"ROCP_TOOL_LIBRARIES": f"{library}{end}", "OTHER_TOOL": str(notes)}
    status, said = fake_gpu.run_program(output, fakes, **named)
    assert status == 0, said
    profile = open_profile(output)
    assert kernels(profile) == {"gemm(float*)": 3, "relu": 3}
    assert [one.detail for one in profile.losses if one.count > 0] == []
    assert notes.read_text().startswith("initialized ")


def test_roctracer_is_torch_profilers_while_it_records_and_ours_before_and_after(
    tmp_path: Path,
    older: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed.")
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, older, program="profiled_program.py")
    assert status == 0, said
    profile = open_profile(output)
    assert kernels(profile) == {"before": 1, "after": 1}
    beforehand, had_it = (one for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE)
    assert beforehand.count == 1 and "nothing is while torch.profiler records GPU work" in beforehand.detail
    assert had_it.count == 1 and had_it.detail.startswith("While torch.profiler recorded GPU work roctracer")
    assert main(["report", str(output)]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert had_it.detail in report and beforehand.detail in report
