"""Times and memory of devices, on a stand-in: a CPU whose profiler writes planes of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.jax.conftest import PROGRAMS, Ran
from tests.truth.invariants import contradictions

SOURCE = (PROGRAMS / "linear.py").read_text().splitlines()


@pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 8), reason="the stand-in is drawn in the layout of JAX 0.8"
)
def test_kernels_of_a_program_stand_on_the_lines_it_was_compiled_from(run: Callable[..., Ran]) -> None:
    ran = run("on_device.py", environment={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert contradictions(ran.profile) == []
    assert ran.runs("jit(train_step)") == 200
    tree = ran.profile.tree
    times = tree.exclusive("gpu_time")
    below = [row for row in range(len(ran.paths)) if times.count[row] and "jit(train_step)" in ran.path(row)]
    assert sum(int(times.sum[row]) for row in below) > 0
    products = [row for row in below if ran.path(row)[-2:-1] == ["dot_general"]]
    found = {SOURCE[tree.node(row).nearest("python").line - 1].strip() for row in products}
    assert found == {"return jnp.tanh(x @ w)"}
    kernels = [row for row in products if ran.paths[row] != "splitK_reduce"]
    assert sum(int(times.count[row]) for row in kernels) == 200 * 8
    seconds = sum(int(times.count[row]) for row in products if ran.paths[row] == "splitK_reduce")
    assert seconds > 0 and seconds % 200 == 0  # no run is counted for two because an operation is two kernels
    assert any("backward" in ran.path(row) for row in products)
    # what the host did to hand it over is not known, and nothing is said of it
    [step] = ran.rows("jit(train_step)")
    assert int(tree.inclusive("time").sum[step]) == 0
    [device] = [one for one in ran.profile.devices if one.index == 0]
    assert device.name
    held = tree.exclusive("peak_live_bytes", device=device.row)
    assert int(held.sum.sum()) >= 3 * 128 * 128 * 4
