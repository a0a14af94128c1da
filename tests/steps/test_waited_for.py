"""Calls of compiled programs return before these have run; what many took is waited for in one place."""

from __future__ import annotations

import pytest

from leadline.profiles.build import build
from leadline.steps import Steps
from leadline.steps.of_profile import steps_of

MS = 1_000_000


def mean_ms(longest_ms: int, others_ms: int, work_ms: int) -> float:
    """Of a loop of 40 calls, of which one takes longest, and the operations of each take `work_ms`."""
    profile = build(
        "\n".join(
            (
                "process train.py | pid=5",
                "  thread main | tid=5 wall_ns=20000000000",
                "    python main @ /home/ada/train.py:44",
                f'      phase turn | call_time={39 * others_ms * MS}/39 call_time={longest_ms * MS}/1 detail={{"of":"step"}}',
                "      operator jit(step) | call_time=40000/40",
                f"        operator dot_general | time={40 * work_ms * MS}/40 call_time={40 * work_ms * MS}/40",
            )
        )
    )
    found = steps_of(profile)
    assert isinstance(found, Steps) and found.main.timed_by == "calls"
    return found.main.mean_ns / MS


def test_a_wait_for_the_work_of_all_is_part_of_each_step() -> None:
    assert mean_ms(4000, 1, 100) == pytest.approx((4000 + 39) / 40)


def test_another_job_on_the_machine_is_none() -> None:
    assert mean_ms(4000, 110, 100) == pytest.approx(110)
