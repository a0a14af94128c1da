"""`prefetch_factor` is advised where workers have time to make batches ahead, and nowhere else.

Tried on a loader of two workers whose passes have six batches, where each worker had nothing to do for 45 % of the run:
a longer queue gained nothing, since a pass began with an empty one.
"""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build

STEPS = 100
BURSTS = [40 if step % 10 == 0 else 0 for step in range(STEPS)]
STEADY = [4] * STEPS


@pytest.mark.parametrize(
    ("waits_ms", "busy", "passes", "advised"),
    [
        (BURSTS, 0.5, 1, True),
        (BURSTS, 0.95, 1, False),  # the workers are the bottleneck
        (STEADY, 0.5, 1, False),  # every batch comes late
        (BURSTS, 0.5, 17, False),  # passes of six batches
    ],
)
def test_batches_are_made_ahead_where_that_helps(waits_ms: list[int], busy: float, passes: int, advised: bool) -> None:
    wall = 10 * STEPS * MS
    waits = ",".join(str(one * MS) for one in waits_ms + [0] * passes)
    making = f"time={int(busy * wall)}/{STEPS} call_time={int(busy * wall)}/{STEPS}"
    lines = [
        f"process train.py | pid=5 start_ns=0 end_ns={wall}",
        f"  thread MainThread | tid=5 wall_ns={wall}",
        "    python main @ /home/ada/train.py:41",
        f'      phase data loading | time={waits} call_time={waits} detail={{"loader":"_MultiProcessingDataLoaderIter"}}',
        "    python main @ /home/ada/train.py:42",
        f"      operator aten::linear | time={5 * STEPS * MS}/{STEPS} call_time={5 * STEPS * MS}/{STEPS}",
        "    python main @ /home/ada/train.py:44",
        f"      phase optimizer | time={STEPS * MS}/{STEPS} call_time={STEPS * MS}/{STEPS}",
        f"    phase step | call_time={wall - 10 * MS}/{STEPS - 1}",
    ]
    for pid in (6, 7):
        lines += [f"process worker | pid={pid} parent_pid=5 start_ns=0 end_ns={wall}", "  thread MainThread"]
        lines += [f"    phase data loading | {making}"]
    profile = build("\n".join(lines))
    profile.meta["host"] = {"cpus": 4}
    (found,) = (one for one in analyze(profile) if one.rule == "data_loading")
    assert ("prefetch_factor" in found.remedy) == advised
