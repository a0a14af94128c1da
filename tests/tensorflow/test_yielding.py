"""The program's own use of TensorFlow's profiler, in every order: it goes first, and calls are counted all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tensorflow.conftest import PROGRAMS, Ran

pytest.importorskip("tensorflow", reason="these tests measure real TensorFlow; make test-tf runs them")

WINDOWS_ALWAYS = Path(__file__).parents[1] / "jax" / "programs" / "windows_always.py"
SEEDS = tuple("1234567")


def _told(output: str) -> list[str]:
    """What each attempt came to: the last line is how many calls there were, which depends on how long the server
    records, and TensorFlow's client tells of each time that it tries."""
    return [line for line in output.splitlines()[:-1] if not line.startswith("Starting to trace")]


@pytest.mark.timeout(400)
def test_sessions_in_right_and_wrong_orders_come_to_what_they_come_to_without_leadline(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    program = str(PROGRAMS / "own_profiler.py")
    ran = run(str(WINDOWS_ALWAYS), "tensorflow", program, "traces", *SEEDS)
    alone = subprocess.run(
        [sys.executable, program, str(tmp_path / "alone"), *SEEDS],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert alone.returncode == 0, alone.stderr
    assert _told(ran.output) == _told(alone.stdout)
    assert ran.output.count(" True\n") > 30 and ran.output.count("AlreadyExistsError") > 9
    assert ran.calls("tf.function(own_step)") == int(ran.output.splitlines()[-1])
    assert sum(int(node.exclusive("time").sum) for node in ran.inside()) > 0  # ours found their time between theirs
    told = ran.profile.meta["available"]["tensorflow"]
    assert told["windows"] > 50
    [served] = [loss.detail for loss in ran.profile.losses]
    assert "profiler server" in served
