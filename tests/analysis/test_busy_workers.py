"""Workers that are alive and idle are no reason to start fewer: a validation loader's wait while training loads."""

from __future__ import annotations

import pytest

from leadline.analysis.case import Case
from leadline.analysis.rules import RULES
from leadline.profiles import Profile
from leadline.profiles.build import build

MS = 1_000_000
STEPS, STEP_MS = 10, 10


def made(making_ms: list[int]) -> Profile:
    """A loop of 10 steps of 10 ms on 4 cores; each worker makes batches for so long."""
    children = "".join(
        f"\nprocess train.py | pid={20 + number} parent_pid=5 start_ns=0 end_ns=100\n"
        f"  thread worker\n    phase data loading | time={spent * MS}/10 call_time={spent * MS}/10"
        for number, spent in enumerate(making_ms)
    )
    loading = (
        f'phase data loading | time={MS}/10 call_time={MS}/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}'
    )
    profile = build(
        f"process train.py | pid=5\n  thread main | tid=5\n    python main @ t.py:5\n      {loading}\n"
        f"    python main @ t.py:6\n      operator aten::mm | time={99 * MS}/10 call_time={99 * MS}/10\n"
        f"    python main @ t.py:7\n      phase optimizer | time=10/10 call_time=10/10{children}"
    )
    profile.meta["host"] = {"cpus": 4}
    return profile


@pytest.mark.parametrize(
    ("making_ms", "told"),
    [
        ([95] * 9, True),
        ([95] * 2 + [1] * 7, False),  # seven stand by
        ([2] * 9, False),
        ([40] * 9, True),  # 3.6 at once, and training: more than four cores
    ],
)
def test_only_workers_that_make_batches_at_once_are_too_many(making_ms: list[int], told: bool) -> None:
    rule = next(one for one in RULES if one.name == "thread_oversubscription")
    found = rule.check(Case(made(making_ms)), {one.name: one.default for one in rule.options})
    assert bool(found) == told
