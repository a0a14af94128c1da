"""Sentences of ranks and devices: who is late, and what a busy device leaves."""

from __future__ import annotations

from tests.verdict.test_account import MS, STEPS, drawn, verdict_of


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
