"""What is advised against waiting for other ranks, by what the program does."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named, training

from leadline.analysis.analyze import analyze

LINE = "python main @ /home/ada/train.py:43"


@pytest.mark.parametrize(("exchanges", "once"), [(160, True), (80, True), (20, False)])
def test_micro_batches_that_exchange_each_by_itself_are_told_of_no_sync(exchanges: int, once: bool):
    """Eight backward passes a step; with no_sync() two buckets are exchanged once."""
    wraps = "  python forward @ /usr/lib/python3.11/site-packages/torch/nn/parallel/distributed.py:9"
    ones = f"operator aten::ones_like | time={80_000}/80 call_time={80_000}/80"
    talk = f"operator c10d::allreduce_ | time={96 * MS}/{exchanges} call_time={96 * MS}/{exchanges}"
    mm = f"operator aten::mm | time={60 * MS}/80 call_time={60 * MS}/80"
    found = named(analyze(training(LINE, wraps, f"    {mm}", LINE, f"  {ones}", f"  {talk}")), "communication")
    assert found.remedy.startswith("Exchange once a step") == once
    assert (found.gain.expected_ns > 6 * MS) == once  # 7 of 8 exchanges would spare 8.4 ms
