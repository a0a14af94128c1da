"""Operations that a framework runs on threads of its own, which share the cores with others."""

from __future__ import annotations

import pytest

from leadline.analysis.case import case_of
from leadline.profiles.build import build
from leadline.verdict.elsewhere import pool_in_line

MS = 1_000_000


@pytest.mark.parametrize(
    ("in_line_ms", "said"),
    [(60, ["XLA's threads wait for a core in 67 % of the time in which they could run"]), (5, [])],
)
def test_threads_of_a_framework_that_stand_in_line_are_said(in_line_ms: int, said: list[str]) -> None:
    profile = build(
        "\n".join(
            (
                "process train.py | pid=5",
                f"  thread MainThread | tid=5 wall_ns={100 * MS} cpu_ns={10 * MS}",
                "    python main @ /home/ada/train.py:43",
                "      operator jit(step) | call_time=40000/40",
                f'      native [waits for a core] | detail={{"wait":"core"}} wait={80 * MS}/10',
                f"  thread tf_XLAEigen | tid=6 wall_ns={100 * MS} cpu_ns={30 * MS}",
                f'    native [waits for a core] | detail={{"wait":"core"}} wait={in_line_ms * MS}/10',
                f'    native [waits for a lock] | detail={{"wait":"lock"}} wait={10 * MS}/10',
            )
        )
    )
    assert pool_in_line(case_of(profile)) == said
