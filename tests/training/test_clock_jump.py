"""The clock of the day is set while a loop runs: steps, windows and files stay what they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import stepped_clock

import leadline
from leadline.distributed.merge import merge_files
from leadline.distributed.stretches import stretches

pytest.importorskip("torch", reason="a loop of torch is measured")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")

LOOP = """
import sys
import torch, leadline

def set_clock(seconds):
    with open(sys.argv[2], "r+") as file:
        file.write(f"{seconds:<15}")

weight = torch.randn(8, 8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
prof = leadline.build_profiler(enable=True, trace_dir=sys.argv[1], start_step=1, end_step=1000, roll_minutes=1e-6,
                               budget=0, max_files=int(sys.argv[4]), rank=0)
prof.start(0)
for step in range(6):
    if step == 3:
        set_clock(int(sys.argv[3]))
    (weight @ weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    prof.step(step)
prof.stop()
"""


def run(folder: Path, seconds: int, max_files: int = 0) -> list[Path]:
    """The files that a loop of six steps has rolled, whose clock is set by `seconds` before the fourth; by their steps."""
    folder.mkdir()
    environment = {**os.environ, **stepped_clock.make(folder)}
    arguments = [str(folder / "profiles"), environment["SET_BY"], str(seconds), str(max_files)]
    subprocess.run([sys.executable, "-c", LOOP, *arguments], env=environment, check=True, timeout=120)
    return sorted((folder / "profiles").glob("*.leadline"), key=lambda path: steps_of(path))


def steps_of(path: Path) -> list[int]:
    return json.loads(path.with_suffix(".json").read_text())["step_numbers"]


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_is_set_changes_no_step_and_no_file(seconds: int, tmp_path: Path) -> None:
    files = run(tmp_path / "run", seconds)
    assert [steps_of(path) for path in files] == [[step] for step in range(6)]
    profiles = [leadline.open(path) for path in files]
    assert [profile.window.steps for profile in profiles] == [(), *((step,) for step in range(1, 6))]
    starts = [profile.processes[0].start_ns for profile in profiles]
    assert abs(starts[4] - starts[1] - seconds * 10**9) < 60 * 10**9, "the clock was really set"
    for path, profile in zip(files, profiles, strict=True):
        assert 0 < json.loads(path.with_suffix(".json").read_text())["steps_sum_ns"] < 60 * 10**9
        (process,) = profile.processes
        assert process.end_ns >= process.start_ns
        assert 0 < profile.meta["wall_ns"] < 3700 * 10**9
        assert all(0 <= ns < 60 * 10**9 for ns in profile.events["duration_ns"].tolist())
        assert {node.name: node.inclusive("time").count for node in profile.tree.find(kind="operator")}["aten::mm"] >= 1
    whole = merge_files([str(path) for path in files])
    assert (whole.left_out, whole.passed_over, whole.ranks) == ((), (), 1)
    found = list(stretches([str(tmp_path / "run" / "profiles")]))
    assert sum(one.files for one in found) == 6
    assert found[-1].end_ns - found[0].start_ns < 600 * 10**9, "as if the clock had always been as it is now"


def test_the_newest_files_stay_where_the_clock_was_set_back(tmp_path: Path) -> None:
    assert [steps_of(path) for path in run(tmp_path / "run", -3600, max_files=3)] == [[3], [4], [5]]
