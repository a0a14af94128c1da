"""`leadline doctor` on machines with a (fake) GPU, without one, and with a CUPTI that another tool holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.checks import nvidia

WHOLE = ("-m", "leadline.cli.main", "doctor", "--json")
ONE_SECTION = """
import sys
from leadline.cli import doctor, main
from leadline.cli.checks import nvidia
doctor.sections = lambda: (nvidia,)
sys.exit(main.main(["doctor", "--json"]))
"""
"""What it says of the GPU and ends with for that alone; other sections import torch."""


def doctor(*words: str, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and the findings of the GPU section by name."""
    result = subprocess.run(
        [sys.executable, *(words or ("-c", ONE_SECTION))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(result.stdout)
    section = next(section for section in report["sections"] if section["title"] == "NVIDIA GPU")
    return result.returncode, {finding["name"]: finding for finding in section["findings"]}


def test_a_gpu_that_can_be_measured(fakes: Path) -> None:
    # Preloaded: a real CUPTI of this machine would be preferred, and does not start with a fake driver.
    _, found = doctor(*WHOLE, LD_LIBRARY_PATH=str(fakes), LD_PRELOAD=str(fakes / "libcupti.so.13"))
    assert found["driver"]["text"].endswith("serves CUDA 13.0")
    assert found["devices"]["text"] == "NVIDIA H200 (fake)"
    assert found["CUPTI"]["level"] == "ok" and "13.0" in found["CUPTI"]["text"]
    assert "yields to torch.profiler" in found["other tools"]["text"]
    assert found["clocks"]["level"] == "ok"


def with_fakes(fakes: Path, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    return doctor(LD_LIBRARY_PATH=str(fakes), LD_PRELOAD=str(fakes / "libcupti.so.13"), **environment)


def test_a_cupti_that_another_tool_holds_fails_and_names_it(fakes: Path) -> None:
    status, found = with_fakes(fakes, FAKE_HOLDER="Nsight Systems")
    assert status == 1
    assert found["CUPTI"]["level"] == "failed" and '"Nsight Systems" holds CUPTI' in found["CUPTI"]["text"]
    assert "run without that tool" in found["CUPTI"]["advice"]


def test_profiling_that_is_not_permitted_fails_with_the_fix(fakes: Path) -> None:
    status, found = with_fakes(fakes, FAKE_REFUSES="35")
    assert status == 1
    assert found["CUPTI"]["level"] == "failed" and "does not permit profiling" in found["CUPTI"]["text"]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found["CUPTI"]["advice"]
    assert "CAP_SYS_ADMIN" in found["CUPTI"]["advice"]


def test_a_driver_older_than_cupti_fails_with_both_versions(fakes: Path) -> None:
    status, found = with_fakes(fakes, FAKE_DRIVER_CUDA="12040")
    assert status == 1
    assert found["driver"]["text"].endswith("serves CUDA 12.4")
    assert "is for CUDA 13 but the driver serves CUDA 12" in found["CUPTI"]["text"]
    assert "update the driver" in found["CUPTI"]["advice"]


def test_hidden_devices_are_no_fault(fakes: Path) -> None:
    _, found = with_fakes(fakes, CUDA_VISIBLE_DEVICES="")
    assert found["driver"]["level"] == "limited"
    assert "CUDA_VISIBLE_DEVICES" in found["driver"]["advice"]


def test_counters_closed_to_users_come_with_the_module_option_and_the_capability(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parameters, process = tmp_path / "params", tmp_path / "status"
    parameters.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    process.write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(nvidia, "_PARAMETERS", parameters)
    monkeypatch.setattr(nvidia, "_CAPABILITIES", process)
    closed = nvidia._permission()
    assert closed.level == "limited" and "closed to users" in closed.text
    assert "NVreg_RestrictProfilingToAdminUsers=0" in closed.advice and "CAP_SYS_ADMIN" in closed.advice
    process.write_text("CapEff:\t000001ffffffffff\n")
    assert nvidia._permission().level == "ok"
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    assert "open to users" in nvidia._permission().text


def test_no_gpu_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    _, found = doctor(LD_LIBRARY_PATH=str(tmp_path))
    assert found["driver"]["level"] == "limited"
    assert "nvidia-smi" in found["driver"]["advice"]


def test_another_tool_s_nvtx_is_named() -> None:
    _, found = doctor(NVTX_INJECTION64_PATH="/other/tool.so")
    assert found["NVTX"]["level"] == "limited" and "/other/tool.so" in found["NVTX"]["text"]


@pytest.mark.parametrize(("refused", "words"), [("", "can be sampled"), ("35", "ERR_NVGPUCTRPERM"), ("26", "profiler")])
def test_whether_instructions_can_be_sampled_is_tried(fakes: Path, refused: str, words: str) -> None:
    _, found = with_fakes(fakes, **({"FAKE_REFUSES_SAMPLING": refused} if refused else {}))
    assert words in found["instructions"]["text"]
    assert found["instructions"]["level"] == ("limited" if refused else "ok")
    metrics = found["GPU metrics"]
    assert metrics["level"] == ("limited" if refused else "ok")
    assert (words if refused else "--gpu-metrics occupancy,dram,tensor,l2,issue") in metrics["text"]
