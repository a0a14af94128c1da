"""Sentences of ranks and devices: who is late, and what a busy device leaves."""

from __future__ import annotations

import pytest
from tests.verdict.test_account import MS, STEPS, drawn, verdict_of

from leadline.analysis.case import Case
from leadline.analysis.rules.late_line import late_line
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.verdict.judge import judge


def test_an_idle_device_behind_data_is_told_as_data_and_not_as_launching():
    whole = 10 * MS * STEPS
    verdict = verdict_of(
        drawn(
            "python main @ /home/ada/train.py:41",
            f"  phase data loading | time={7 * MS * STEPS}/{STEPS} call_time={7 * MS * STEPS}/{STEPS}",
            "python main @ /home/ada/train.py:42",
            f"  operator aten::mm | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
            f"    kernel gemm | gpu_time@0:7={whole // 5}/{STEPS}",
        )
    )
    assert verdict.kind == "data"
    assert "waits for data, the device is idle meanwhile" in verdict.sentence
    assert "train.py:41" in verdict.sentence


def test_a_device_that_is_idle_while_the_cpu_launches_is_launch_bound():
    verdict = verdict_of(
        drawn(
            "python main @ /home/ada/train.py:42",
            f"  operator aten::mm | time={8 * MS * STEPS}/{STEPS * 500} call_time={8 * MS * STEPS}/{STEPS * 500}",
            f"    kernel gemm | gpu_time@0:7={2 * MS * STEPS}/{STEPS * 500} gpu_idle_time@0:7={7 * MS * STEPS}/{STEPS * 500}",
        )
    )
    assert verdict.kind == "launch"
    assert "(busy 20 %)" in verdict.sentence


def test_a_device_that_communicates_longer_than_it_is_idle_waits_for_ranks():
    whole = 10 * MS * STEPS
    verdict = verdict_of(
        drawn(
            "python main @ /home/ada/train.py:42",
            f"  operator c10d::alltoall_ | time={2 * MS * STEPS}/{STEPS} call_time={2 * MS * STEPS}/{STEPS}",
            f"    collective ncclDevKernel_SendRecv | gpu_time@0:7={whole * 54 // 100}/{STEPS}",
            f"  operator aten::copy_ | time={3 * MS * STEPS}/{STEPS} call_time={3 * MS * STEPS}/{STEPS} sync_time={3 * MS * STEPS}/{STEPS}",
            f"    kernel copy | gpu_time@0:7={whole // 20}/{STEPS}",
        )
    )
    assert verdict.kind == "ranks"
    assert "communication" in verdict.sentence


def two_ranks(load: str, waits: str = "") -> Profile:
    """Twenty steps of 100 ms of two ranks. Rank 1 spends 70 ms of each at `load`; rank 0 waits for it in the backward
    pass, and `waits` is what the looks at it saw there."""
    lines = []
    for rank in (0, 1):
        talk = (75, 5)[rank] * MS * STEPS
        lines += [
            f"process train.py | pid={5 + rank} rank={rank}",
            f"  thread main | tid={5 + rank} wall_ns={100 * MS * STEPS} cpu_ns={20 * MS * STEPS}",
            f"    phase step | call_time={100 * MS * (STEPS - 1)}/{STEPS - 1}",
            "    python <module> @ /home/ada/train.py:60",
            "      python step @ /home/ada/train.py:30",
            f"        operator aten::mm | time={15 * MS * STEPS}/{STEPS} call_time={15 * MS * STEPS}/{STEPS}",
            "      python step @ /home/ada/train.py:31",
            f"        operator c10d::allreduce_ | time={talk}/{STEPS} call_time={talk}/{STEPS}",
            *([f"        {waits}"] if waits and rank == 0 else []),
            *([f"      {line}" for line in load.splitlines()] if rank == 1 else []),
            "      python step @ /home/ada/train.py:32",
            f"        phase optimizer | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
        ]
    profile = build("\n".join(lines))
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    return profile


SPENT = 70 * MS * STEPS
SLEEPS = 'native [sleeps] | detail={"wait":"sleep"} '
LOCK = 'native [waits for a lock] | detail={"wait":"lock"} '


@pytest.mark.parametrize("waits", ["", f"{LOCK}wait={SPENT}/200"], ids=["measured", "seen to wait"])
@pytest.mark.parametrize(
    "load",
    [
        f"python load @ /home/ada/data.py:12\n  {SLEEPS}wait={SPENT}/200",
        f"python load @ /home/ada/data.py:12\n  python parse @ /usr/lib/python3.11/json/decoder.py:40 | cpu_sample={SPENT}/200",
        f"python load @ /home/ada/data.py:12\n  operator aten::sort | time={SPENT}/{STEPS} call_time={SPENT}/{STEPS}",
        f"python load @ /home/ada/data.py:12\n  phase data loading | time={SPENT}/{STEPS} call_time={SPENT}/{STEPS}",
    ],
    ids=["sleeps", "computes in Python", "calls an operator", "loads data"],
)
def test_the_late_rank_s_own_line_is_named_and_not_the_line_that_waits(load: str, waits: str) -> None:
    found = late_line(Case(profile := two_ranks(load, waits)), 1)
    assert found is not None
    assert abs(found.excess_ns - 70 * MS) < MS
    assert (line := Case(profile).line(found.row)) is not None and line.short.endswith("data.py:12".partition(":")[0])
    assert line.line == 12
    verdict = judge(profile)
    said = "\n".join([verdict.sentence, *verdict.because])
    assert "data.py:12" in said, said
    assert "train.py:31" not in verdict.sentence, said
