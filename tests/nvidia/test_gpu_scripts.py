"""bench/gpu/check.sh without a GPU: how its parts read profiles and traces, how they judge, and what the script says here."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leadline.profile import open_profile

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "gpu"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def figures(**seconds: float) -> dict[str, Any]:
    return {tool: {"seconds": value, "calls_per_step": 100} for tool, value in seconds.items()}


def test_what_misses_its_limit_fails_and_what_was_not_measured_is_not_passed() -> None:
    cost = load("gpu_cost")
    best = {
        "decode": figures(none=1.0, leadline=1.05, torch=1.10),
        "resnet50": figures(none=1.0, leadline=1.02, torch=1.01),
        "gpt": {},
    }
    sizes = {"1000": {"resident": 100, "size": 10}, "10000": {"resident": 101, "size": 10}}
    verdicts = cost.judge(best, sizes)
    assert verdicts["decode"]["ok"] is True
    assert verdicts["decode"]["share_of_torch"] == pytest.approx(0.5)
    assert verdicts["decode"]["us_per_call"] == pytest.approx(500)
    assert verdicts["resnet50"]["ok"] is False  # slower than torch.profiler in the same run
    assert verdicts["gpt"]["ok"] is None
    assert verdicts["constant"]["ok"] is True
    grown = cost.judge(best, {"1000": {"resident": 100, "size": 10}, "10000": {"resident": 120, "size": 10}})
    assert grown["constant"]["ok"] is False
    page = load("gpu_summary").summary({"gpu": "GPU"}, {"graphs": {"ok": False, "seconds": 1}}, {"verdicts": verdicts})
    assert "| graphs | **failed** | 1 |" in page and "| gpt | not measured |" in page


def test_both_sides_of_the_differential_test_count_alike(tmp_path: Path, fakes: Path) -> None:
    checks = load("gpu_checks")
    script, output = ROOT / "tests/nvidia/fake_program.py", tmp_path / "out.leadline"
    environment = {**os.environ, "FAKES": str(fakes)}
    subprocess.run([sys.executable, str(script), str(output)], env=environment, check=True)
    counts, times = checks.kernels(open_profile(output))
    trace = {
        "traceEvents": [
            *[{"cat": "kernel", "name": "gemm(float*)", "dur": 50.0}] * 3,
            *[{"cat": "kernel", "name": "relu", "dur": 10.0}] * 3,
            {"cat": "cpu_op", "name": "aten::mm", "dur": 1.0},
        ]
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    assert checks.trace_kernels(path) == (counts, times)
    assert checks.losses(open_profile(output)) == {}


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("The script is for bash, which is not installed here.")
    script = str(FOLDER / "check.sh")
    without = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert without.returncode == 2 and "usage" in without.stderr
    broken = subprocess.run(
        ["bash", script, str(tmp_path / "out")],
        env={**os.environ, "PYTHON": sys.executable, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    ) if _hide_cmake(tmp_path) else None  # fmt: skip
    assert broken is not None and broken.returncode == 2
    assert "build: status 1" in broken.stdout


def _hide_cmake(folder: Path) -> bool:
    """A cmake that fails, found first: building for real takes minutes and is what the rest of CI does."""
    cmake = folder / "cmake"
    cmake.write_text("#!/bin/sh\nexit 1\n")
    cmake.chmod(0o755)
    return True
