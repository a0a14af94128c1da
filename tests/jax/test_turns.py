"""A step of a program that marks none is as long as its loop's turns, with what is neither operator nor wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.jax.conftest import Ran

from leadline.analysis.case import case_of
from leadline.analysis.loop import least_step_ns
from leadline.steps.of_profile import steps_of


def test_a_step_is_as_long_as_a_turn(run: Callable[..., Ran]) -> None:
    ran = run("turns.py")
    turn_ms = float(ran.output.split()[-1])
    steps = steps_of(ran.profile)
    assert (steps.number, steps.timed_by) == (220, "calls")
    assert steps.main.mean_ns / 1e6 == pytest.approx(turn_ms, rel=0.15)
    verdict = ran.profile.verdict
    assert verdict.account is not None and verdict.account.wall_ns == pytest.approx(steps.main.mean_ns, abs=1)
    assert verdict.kind == "blocked" and verdict.place is not None
    assert (verdict.place.short, verdict.place.line) == ("turns.py", 24)
    assert "no clock" not in verdict.trust


def test_turns_of_other_programs_are_none_of_this_loop(run: Callable[..., Ran]) -> None:
    """What takes a turn in microseconds beside the steps says nothing of the least that a step takes."""
    profile = run("turns.py").profile
    case = case_of(profile)
    least = least_step_ns(profile, case.analysis.scopes, int(case.loop.anchors[0]))
    assert least == steps_of(profile).main.min_ns > 10_000_000
