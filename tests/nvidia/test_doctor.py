"""`leadline doctor` on machines with a (fake) GPU, without one, and with a CUPTI that another tool holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def doctor(**environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and the findings of the GPU section by name."""
    result = subprocess.run(
        [sys.executable, "-m", "leadline.cli.main", "doctor", "--json"],
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
    _, found = doctor(LD_LIBRARY_PATH=str(fakes), LD_PRELOAD=str(fakes / "libcupti.so.13"))
    assert found["driver"]["text"] == "serves CUDA 13.0"
    assert found["devices"]["text"] == "NVIDIA H200 (fake)"
    assert found["CUPTI"]["level"] == "ok" and "13.0" in found["CUPTI"]["text"]
    assert "yields to torch.profiler" in found["other tools"]["text"]
    assert found["clocks"]["level"] == "ok"


def test_no_gpu_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    _, found = doctor(LD_LIBRARY_PATH=str(tmp_path))
    assert found["driver"]["level"] == "limited"
    assert "nvidia-smi" in found["driver"]["advice"]


def test_another_tool_s_nvtx_is_named() -> None:
    _, found = doctor(NVTX_INJECTION64_PATH="/other/tool.so")
    assert found["NVTX"]["level"] == "limited" and "/other/tool.so" in found["NVTX"]["text"]
