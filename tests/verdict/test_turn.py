"""Lines of the loop that call no operator belong to its turns, as the source says; what they do is not unexplained."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verdict.test_account import MS, STEPS, counted, drawn, operator

from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.verdict.judge import judge

LOOP = """\
def main():
    prepare()
    for batch in batches:
        train_step(batch)
        wait_for_quota()
        if batch % 10 == 0:
            report()
    finish()
"""


def looped(folder: Path, line: int) -> Profile:
    """A step of 10 ms, 2 of them operators below line 4; a sleep of 8 ms a step at `line`."""
    source = folder / "train.py"
    source.write_text(LOOP)
    whole = 10 * MS * STEPS
    profile = build(
        "\n".join(
            (
                "process train.py | pid=5",
                f"  thread MainThread | tid=5 wall_ns={whole} cpu_ns={whole}",
                f"    phase step | call_time={10 * MS * (STEPS - 1)}/{STEPS - 1} {counted(2, 0)}",
                f"    python main @ {source}:4",
                f"      operator aten::mm | time={2 * MS * STEPS}/{STEPS} call_time={2 * MS * STEPS}/{STEPS}",
                "      phase optimizer | time=20/20 call_time=20/20",
                f"    python main @ {source}:{line}",
                f'      native [sleeps] | detail={{"wait":"sleep"}} wait={8 * MS * STEPS}/10',
            )
        )
    )
    profile.meta.update(program={"argv": ["train.py"], "cwd": str(folder)}, host={"cpus": 8})
    return profile


def test_a_line_beside_the_only_one_with_operators_is_part_of_the_step(tmp_path: Path) -> None:
    verdict = judge(looped(tmp_path, 5))
    assert verdict.account is not None
    assert verdict.kind == "blocked"
    assert verdict.account.ns("sleep") == pytest.approx(8 * MS, abs=10)
    assert verdict.place is not None
    assert verdict.place.line == 5
    assert verdict.account.ns("unexplained") < 10


@pytest.mark.parametrize("line", [2, 8])
def test_lines_outside_of_the_loop_are_not(tmp_path: Path, line: int) -> None:
    verdict = judge(looped(tmp_path, line))
    assert verdict.account is not None
    assert verdict.place is None or verdict.place.line != line


def test_time_off_a_core_that_no_look_saw_is_off_a_core_and_not_unexplained() -> None:
    verdict = judge(drawn(*operator("aten::mm", 2), counts=counted(2.2, 0)))
    assert verdict.account is not None
    assert verdict.account.share("brief") == pytest.approx(0.78, abs=0.02)
    assert verdict.account.share("unexplained") < 0.05
    assert verdict.kind == "blocked"
    assert "short waits" in verdict.sentence or "too short" in verdict.sentence
