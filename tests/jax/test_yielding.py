"""The program's own use of XLA's profiler, in every order: it goes first, and runs are counted all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.jax.conftest import PROGRAMS, Ran

SEEDS = ("1", "2")


@pytest.mark.timeout(200)
def test_sessions_in_right_and_wrong_orders_come_to_what_they_come_to_without_leadline(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = run("windows_always.py", "jax", str(PROGRAMS / "own_profiler.py"), "traces", *SEEDS)
    alone = subprocess.run(
        [sys.executable, str(PROGRAMS / "own_profiler.py"), str(tmp_path / "alone"), *SEEDS],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert alone.returncode == 0, alone.stderr
    assert ran.output == alone.stdout
    assert ran.output.count(" whole\n") > 9 and ran.output.count("ALREADY_EXISTS") > 0
    runs = sum(int(line.removeprefix("runs ")) for line in ran.output.splitlines() if line.startswith("runs "))
    assert ran.runs("jit(step)") == runs
    assert sum(ran.time_ns[row] for row in ran.rows("dot_general")) > 0  # ours found their time between theirs
    told = ran.profile.meta["available"]["jax"]
    assert told["windows"] > 4
    [served] = [loss.detail for loss in ran.profile.losses if "profiler server" in loss.detail]
    assert "not timed after that" in served
    assert not [loss.detail for loss in ran.profile.losses if "lost" in loss.detail or "could not" in loss.detail]
