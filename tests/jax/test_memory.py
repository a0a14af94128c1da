"""Memory of arrays stands on the lines that made them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.jax.conftest import PROGRAMS, Ran


def test_living_arrays_stand_on_the_lines_that_made_them_and_donated_ones_do_not_count(run: Callable[..., Ran]) -> None:
    ran = run("memory.py")
    source = (PROGRAMS / "memory.py").read_text().splitlines()
    peak = ran.profile.tree.exclusive("peak_live_bytes").sum.tolist()
    lines = {}
    for row, held in enumerate(peak):
        if held and Path(ran.profile.tree.text("file", int(ran.profile.tree.frame_of[row]))).name == "memory.py":
            lines[source[ran.line(row) - 1].strip()] = held
    assert lines["return jnp.zeros((1000, 100))"] == 4 * 1000 * 100 * 4
    of_value = {line: held for line, held in lines.items() if "value = " in line}
    # One of them, however often it was made anew, and the scalar that JAX keeps for `ones`.
    assert 500 * 1000 * 4 <= sum(of_value.values()) <= 500 * 1000 * 4 + 64
