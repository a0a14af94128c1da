"""XLA's profiler is opened and closed while CPU samples interrupt all threads. 2 runs here, 200 in `make storm`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.profiles import open_profile

pytest.importorskip("jax", reason="this test measures real JAX; install jax==0.10.2 to run it")

RUNS = int(os.environ.get("LEADLINE_JAX_RUNS", "2"))
PROGRAM = """
import jax
import jax.numpy as jnp
import leadline
x = jnp.ones((64, 64))
for turn in range(24):
    f = jax.jit(lambda x, turn=turn: jnp.sin(x @ x) + turn)
    for _ in range(3):
        f(x).block_until_ready()
    leadline.step()
print("whole", flush=True)
"""


@pytest.mark.timeout(90 * RUNS)
def test_no_sample_damages_a_program_whose_sessions_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "leadline", "run", "-q", "--cpu-sample=997", "--native=yes", "-o", "out.leadline"]
    environment = {**os.environ, "MALLOC_CHECK_": "3", "JAX_PLATFORMS": "cpu"}
    ended = []
    for _ in range(RUNS):
        done = subprocess.run(
            [*command, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=80
        )
        ended.append((done.returncode, done.stdout, done.stderr))
    assert [one for one in ended if one != (0, "whole\n", "")] == []
    tree = open_profile(tmp_path / "out.leadline").tree
    assert tree.exclusive("cpu_sample").count.sum() > 0
