"""Results of one step are not results of all steps, where each step calls an operator with a shape of its own."""

from __future__ import annotations

import pytest

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS = 1_000_000
MIB = 1 << 20
STEPS = 20


def packed(*, alive: int) -> Profile:
    """Sixty results of a mebibyte in each of the steps, each step with a size of its own; of the last steps the results
    of so many are alive at the peak."""
    lines = []
    for step in range(STEPS):
        live = f" peak_live_bytes={60 * MIB}/60" if step >= STEPS - alive else ""
        detail = f'detail={{"shapes":[[{32 + step},8]]}}'
        lines.append(
            f"      operator aten::tanh | time={6 * MS}/60 call_time={6 * MS}/60 alloc_bytes={60 * MIB}/60{live} {detail}"
        )
    return build(
        "\n".join(
            (
                "process train.py | pid=5",
                f"  thread main | tid=5 wall_ns={STEPS * 10 * MS}",
                "    python main @ /home/ada/train.py:7",
                f"      phase optimizer | call_time={STEPS}/{STEPS}",
                *lines,
            )
        )
    )


@pytest.mark.parametrize("rule", ["kept_results", "allocator"])
@pytest.mark.parametrize(("alive", "found"), [(1, 0), (STEPS, 1)])
def test_what_one_step_holds_is_not_kept(rule: str, alive: int, found: int) -> None:
    assert len(list(analyze(packed(alive=alive), [rule]))) == found
