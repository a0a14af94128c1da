"""Drawn profiles of devices that several tests of rules share."""

from __future__ import annotations

from collections.abc import Callable

from tests.analysis.test_findings import training

from leadline.profiles.profile import Profile

MS = 1_000_000


def scratch(times: int, ms: int) -> Callable[[], Profile]:
    """A kernel for which the driver takes 1 MiB so many times in ten steps, and that waits so many ms for it in all."""
    taken = f"scratch_time@0:7={ms * MS}/{times} scratch_alloc_bytes@0:7={times << 20}/{times}"
    return lambda: training(
        "python main @ /home/ada/train.py:43",
        f"  operator aten::mm | time={MS}/10 call_time={MS}/10",
        f"    kernel spills | gpu_time@0:7={9 * MS}/10 scratch_bytes=640/10 {taken}",
    )
