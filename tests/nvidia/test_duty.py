"""Steps left out on a GPU: CUPTI is switched off and on between them, and no kernel of a measured step is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from leadline.profiles import open_profile


def test_kernels_are_those_of_the_measured_steps(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    program = str(Path(__file__).with_name("duty_program.py"))
    # The draw is a job's own: of this one some blocks are left out, whatever their length.
    job = {"MASTER_ADDR": "", "MASTER_PORT": "29500", "SLURM_JOB_ID": ""}
    environment = {**os.environ, "FAKES": str(fakes), **job}
    subprocess.run([sys.executable, program, str(output)], env=environment, check=True)
    profile = open_profile(output)
    told = profile.meta["processes"][0]["duty"]
    assert told["steps_measured"] + told["steps_left_out"] == 179  # the first one has no begin
    assert told["steps_left_out"] >= 16
    kernels = sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel"))
    assert kernels == 2 * (told["steps_measured"] + 1)
    assert [loss for loss in profile.losses if loss.count > 0] == []
