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


def loop(calls: str, jitted: str) -> Steps:
    """Of 40 calls of a program in one loop, with the metrics of its turns and of the program."""
    found = steps_of(
        build(
            "\n".join(
                (
                    "process train.py | pid=5",
                    "  thread main | tid=5 wall_ns=20000000000",
                    "    python main @ /home/ada/train.py:44",
                    f'      phase turn | {calls} detail={{"of":"step"}}',
                    f"      operator jit(step) | {jitted}",
                    "      operator float() | time=3000000000/4 call_time=3000000000/4",
                )
            )
        )
    )
    assert isinstance(found, Steps)
    return found


def test_a_step_is_no_shorter_than_the_run_of_its_program() -> None:
    """Calls return at once until the queue is full: 36 turns of 1 ms, 4 that waited 100 ms."""
    found = loop(f"call_time={436 * MS}/40", f"call_time={40 * 90 * MS}/40")
    assert found.main.mean_ns / MS == pytest.approx(90)


def test_calls_of_a_program_whose_runs_are_not_timed_are_steps() -> None:
    found = loop(f"call_time={40 * 60 * MS}/40", "call_time=0/40")
    assert (found.main.number, found.main.mean_ns / MS) == (40, pytest.approx(60))
