"""Operators inside others, each time with another shape, are work of the loop."""

from __future__ import annotations

import pytest

from leadline.analysis.case import case_of
from leadline.profiles.build import build

MS = 1_000_000
STEPS = 100


def test_what_runs_in_each_step_with_another_shape_each_is_part_of_it() -> None:
    inner = (
        f'      operator aten::mm | time={10 * MS}/2 call_time={10 * MS}/2 detail={{"shapes":[[{size},8],[8,8]]}}'
        for size in range(50)
    )
    profile = build(
        "\n".join(
            (
                "process serve.py | pid=5",
                f"  thread main | tid=5 wall_ns={STEPS * 6 * MS}",
                "    python main @ /home/ada/serve.py:7",
                f"      phase optimizer | call_time={STEPS}/{STEPS}",
                f"      operator aten::encoder | time={STEPS * MS}/{STEPS} call_time={STEPS * 6 * MS}/{STEPS}",
                *("  " + line for line in inner),
                f"        operator aten::setup | time={MS}/1 call_time={MS}/1",
            )
        )
    )
    loop = case_of(profile).loop
    assert loop.steps == STEPS
    assert loop.work_ns == 6 * MS  # a millisecond of the encoder's own and five of its products; no set-up


def test_a_call_that_was_interrupted_for_less_than_a_step_is_part_of_one() -> None:
    def work_ms(longest_ms: int) -> float:
        profile = build(
            "\n".join(
                (
                    "process serve.py | pid=5",
                    f"  thread main | tid=5 wall_ns={STEPS * 6 * MS}",
                    "    python main @ /home/ada/serve.py:7",
                    f"      phase optimizer | call_time={STEPS}/{STEPS}",
                    f"      operator aten::mm | time={STEPS * 5 * MS}/{STEPS} call_time={STEPS * 5 * MS}/{STEPS}",
                    f"      operator aten::add | time={99_000}/99 time={longest_ms * MS}/1",
                )
            )
        )
        return case_of(profile).loop.work_ns / MS

    assert work_ms(4) == pytest.approx(5 + (4 + 0.099) / STEPS)
    assert work_ms(400) == pytest.approx(5, abs=0.01)
