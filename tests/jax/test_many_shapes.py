"""A function that is compiled for each shape is one step, however many programs XLA made of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.jax.conftest import Ran

from leadline.steps.of_profile import steps_of


def test_each_turn_is_a_step_and_compiling_is_what_it_takes(run: Callable[..., Ran]) -> None:
    ran = run("many_shapes.py")
    turn_ms = float(ran.output.split()[-1])
    assert ran.runs("jit(step)") == 30
    assert steps_of(ran.profile).number == 30
    verdict = ran.profile.verdict
    assert verdict.kind == "compile" and verdict.place is not None
    assert (verdict.place.short, verdict.place.line) == ("many_shapes.py", 23)
    assert "was compiled 15 times" in " ".join(verdict.because)
    # what is not compiling, calling or running the function is not in it; the first compilation is before the steps
    assert verdict.account.wall_ns / 1e6 == pytest.approx(turn_ms, rel=0.35)
