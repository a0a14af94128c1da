"""The programs of bench/workloads, measured as a user would: their profiles hold no contradiction."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.truth.invariants import contradictions
from tests.truth.shares import shares_wrong

from leadline.profiles import open_profile

BENCH = Path(__file__).parents[2] / "bench"
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
import torch
import workloads
torch.set_num_threads(1)
step = workloads.load(sys.argv[1])
for _ in range(4):
    step()
"""

pytest.importorskip("torch", reason="the workloads need torch, which is not installed here")


@pytest.mark.parametrize("name", ["micro", "gpt", "gpt_tiny"])
def test_a_workload_is_told_truly(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "--trace", "steps=2", "-o", "out.leadline"]
    arguments = ["program.py", name, str(BENCH)]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    profile = open_profile(tmp_path / "out.leadline")
    assert len(profile.events["start_ns"]) > 100 and profile.tree.find(kind="phase", name="backward")
    assert not [*contradictions(profile), *shares_wrong(profile)]
