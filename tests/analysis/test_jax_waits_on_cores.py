"""Waits for values of JAX where its device is the CPU: XLA computes on the cores that Python would use meanwhile."""

from __future__ import annotations

import pytest
from tests.analysis.drawn_jax import MS, step, stepped

from leadline.analysis.analyze import analyze


def waits(asked: str, python_ms: int, wait_ms: int):
    """Steps of 10 ms, of which `python_ms` were sampled in Python and `wait_ms` were waits."""
    profile = stepped(
        *step(),
        f"operator {asked} | sync_time={10 * wait_ms * MS}/10",
        f"python batch @ /home/ada/train.py:9 | cpu_sample={10 * python_ms * MS}/40",
    )()
    return [one for one in analyze(profile) if one.rule == "synchronisation"]


@pytest.mark.parametrize(("python_ms", "wait_ms"), [(1, 8), (1, 4)])
def test_a_wait_that_ends_each_step_is_no_fault_where_python_takes_little(python_ms: int, wait_ms: int) -> None:
    assert waits(".block_until_ready()", python_ms, wait_ms) == []


@pytest.mark.parametrize("asked", ["int()", ".block_until_ready()"])
def test_waiting_less_gains_no_more_than_half_of_python(asked: str) -> None:
    (found,) = waits(asked, 4, 5)
    assert 0 < found.gain.expected_ns <= found.gain.high_ns <= 2 * MS
    assert "XLA's threads idle" in " ".join(found.evidence)
