"""What a launch and a record cost in instructions, with the real monitor and collector: deterministic, so a gate.

Times of the same are in bench/results/gpu_provider.md; a busy machine changes those and not these.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.counted import built, counts

LAUNCH, RECORD = 2_350, 2_900
"""At most so many instructions: begin and end of a launch on the program's thread, a kernel's record on ours. Measured
when they were set: 2,127 and 2,622, with GCC 12."""
FEW, MANY = 2_000, 12_000


@pytest.fixture(scope="module")
def program() -> Path:
    return built("nvidia_bench")


def instructions(program: Path, what: str, count: int) -> int:
    """Of the whole program."""
    return counts(program, "once", what, str(count))["Ir"]


def each(program: Path, what: str) -> float:
    """Of one more, so that the start of the program is in no figure."""
    return (instructions(program, what, MANY) - instructions(program, what, FEW)) / (MANY - FEW)


@pytest.mark.timeout(300)
def test_a_launch_and_a_record_take_no_more_instructions_than_they_did(program: Path) -> None:
    launch, both = each(program, "launch"), each(program, "record")
    assert 500 < launch < LAUNCH, f"a launch takes {launch:.0f} instructions"
    assert 500 < both - launch < RECORD, f"a record takes {both - launch:.0f} instructions"
