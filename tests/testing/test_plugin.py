"""The pytest plugin as a user meets it: a baseline, a pass, and a failure that names the path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

TEST = """
import torch

def test_step(leadline_benchmark):
    x = torch.ones(SIZE, SIZE)
    verdict = leadline_benchmark(lambda: (x @ x).relu(), steps=10, runs=RUNS)
"""


@pytest.mark.torch
def test_baseline_then_pass_then_failure(tmp_path: Path) -> None:
    def run(size: int, *options: str, runs: int = 2) -> tuple[int, str]:
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["leadline.testing"]')
        (tmp_path / "test_speed.py").write_text(TEST.replace("SIZE", str(size)).replace("RUNS", str(runs)))
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_speed.py", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout

    code, text = run(64)
    assert code == 0, text
    assert len(list((tmp_path / ".leadline-baseline").glob("*.leadline"))) == 2
    code, text = run(64, "--leadline-max-slowdown", "100000%", "--leadline-max-memory", "5%")
    assert (code, "1 passed" in text) == (0, True), text
    code, text = run(128, "--leadline-max-slowdown", "100000%", "--leadline-max-memory", "5%")
    assert code == 1, text
    assert "gate: failed" in text
    assert "aten::" in text
    before = {file.name: file.stat().st_ino for file in (tmp_path / ".leadline-baseline").iterdir()}
    code, text = run(128, "--leadline-update", runs=1)
    assert code == 0, text
    after = {file.name: file.stat().st_ino for file in (tmp_path / ".leadline-baseline").iterdir()}
    assert len(after) == 1  # no run of the old baseline is left, and no half-written file
    assert not set(after.values()) & set(before.values())  # the new file took the old one's place as a whole
