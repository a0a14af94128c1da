"""`leadline doctor` on made-up machines with AMD GPUs, and on this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.cli.checks import FAILED, LIMITED, OK, Finding, amd


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An MI300X with a second partition, driver and ROCm; no SDK but what a test adds."""
    for name in (
        "HIP_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ROCM_PATH",
        "ROCP_TOOL_LIBRARIES",
        "ROCPROFILER_PC_SAMPLING_BETA_ENABLED",
    ):
        monkeypatch.delenv(name, raising=False)
    files = {
        "dev/kfd": "",
        "sys/module/amdgpu/version": "6.12.12\n",
        "opt/rocm/.info/version": "7.0.2-56\n",
        "sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\nsimd_count 0\n",
        "sys/class/drm/renderD128/device/current_compute_partition": "DPX\n",
    }
    for node in ("1", "2"):
        files[f"sys/class/kfd/kfd/topology/nodes/{node}/properties"] = (
            "simd_count 608\ngfx_target_version 90402\ndrm_render_minor 128\n"
        )
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(amd, "ROOT", tmp_path)
    monkeypatch.setattr(
        amd, "sdk_candidates", lambda: iter(["/opt/rocm/lib/librocprofiler-sdk.so", "librocprofiler-sdk.so.1"])
    )
    monkeypatch.setattr(amd, "older_candidates", lambda: iter(["libroctracer64.so.4"]))
    return tmp_path


def found() -> dict[str, Finding]:
    return {finding.name: finding for finding in amd.check()}


def test_a_machine_that_can_be_measured(machine: Path) -> None:
    seen = found()
    assert {name: finding.level for name, finding in seen.items()} == {
        "driver": OK,
        "permission": OK,
        "devices": OK,
        "ROCm": OK,
        "rocprofiler-sdk": OK,
        "instructions": LIMITED,
        "counters": OK,
        "start of HIP": OK,
    }
    assert seen["driver"].text == "amdgpu 6.12.12, /dev/kfd"
    assert seen["devices"].text == "2 gfx942 in mode DPX"
    assert seen["ROCm"].text.startswith("7.0.2")


def test_no_amd_gpu_is_no_fault(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "ROOT", machine / "nowhere")
    (only,) = amd.check()
    assert only.level == LIMITED and "/dev/kfd" in only.text


def test_what_is_wrong_is_named_with_its_remedy(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd.os, "access", lambda path, mode: False)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "1,0")
    monkeypatch.setenv("ROCP_TOOL_LIBRARIES", "/no/such/tool.so")
    monkeypatch.setattr(amd, "sdk_candidates", lambda: iter(["/a/librocprofiler-sdk.so", "/b/librocprofiler-sdk.so"]))
    (machine / "opt/rocm/.info/version").write_text("6.1.3-1\n")
    seen = found()
    assert seen["permission"].level == FAILED and "usermod -aG" in seen["permission"].advice
    assert seen["visible"].level == LIMITED and "ROCR_VISIBLE_DEVICES (1,0)" in seen["visible"].text
    assert seen["ROCm"].level == LIMITED and "6.2" in seen["ROCm"].advice
    assert seen["copies of rocprofiler-sdk"].level == LIMITED
    assert seen["start of HIP"].level == FAILED and "/no/such/tool.so" in seen["start of HIP"].text
    (machine / "dev/kfd").unlink()
    assert found()["driver"].level == FAILED
    monkeypatch.setattr(amd, "sdk_candidates", lambda: iter(["librocprofiler-sdk.so.1"]))
    (machine / "dev/kfd").write_text("")
    assert found()["rocprofiler-sdk"].level == FAILED


def test_instructions_are_sampled_where_the_device_can_and_it_is_permitted(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1" in found()["instructions"].advice
    monkeypatch.setenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1")
    assert found()["instructions"].level == OK and "gfx942 with reasons" in found()["instructions"].text
    for node in ("1", "2"):
        properties = machine / f"sys/class/kfd/kfd/topology/nodes/{node}/properties"
        properties.write_text("simd_count 384\ngfx_target_version 110000\ndrm_render_minor 128\n")
    assert found()["instructions"].level == LIMITED and "MI200" in found()["instructions"].text


def test_roctracer_is_named_where_there_is_no_sdk(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "sdk_candidates", lambda: iter(["librocprofiler-sdk.so.1"]))
    monkeypatch.setattr(amd, "older_candidates", lambda: iter(["/opt/rocm/lib/libroctracer64.so.4"]))
    seen = found()["rocprofiler-sdk"]
    assert seen.level == LIMITED and "/opt/rocm/lib/libroctracer64.so.4 reports kernels" in seen.text


@pytest.mark.parametrize(
    ("level", "wanted", "words"),
    [
        ("auto", OK, "clocks follow load"),
        ("profile_standard", OK, "clocks are held below their peak, so runs can be compared"),
        ("low", LIMITED, "held below the devices' maximum"),
    ],
)
def test_the_performance_level_that_times_depend_on_is_said(machine: Path, level: str, wanted: str, words: str) -> None:
    (machine / "sys/class/drm/renderD128/device/power_dpm_force_performance_level").write_text(f"{level}\n")
    said = found()["performance level"]
    assert said.level == wanted and said.text.startswith(level) and words in said.text
    assert (said.level == OK) == (said.advice == "")
