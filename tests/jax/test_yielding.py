"""The program's own use of JAX's profiler: it goes first, and runs are counted all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.jax.conftest import Ran


def test_traces_that_the_program_takes_itself_are_whole_and_runs_are_counted(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = run("own_profiler.py", str(tmp_path / "traces"), "4")
    runs, traces = map(int, ran.output.split())
    assert traces > 2
    assert ran.runs("jit(step)") == runs
    assert sum(ran.time_ns[row] for row in ran.rows("dot_general")) > 0  # ours found their time between theirs
