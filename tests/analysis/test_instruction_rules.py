"""What the rules about the inside of kernels must not take for a problem, and what their words go by."""

from __future__ import annotations

import pytest
from tests.analysis.test_every_rule import sampled, waiting

from leadline.analysis.analyze import analyze

FULL = ("lg_throttle", 400, 400)


def found(rule, make):
    return list(analyze(make(), [rule]))


@pytest.mark.parametrize(
    "matrix",
    [
        ("HGMMA.64x256x16.F32.BF16 R24", "warpgroup_arrive", 300, 290),
        ("@P0 HMMA.16816.F32.BF16 R4", "math_pipe_throttle", 300, 250),
        ("HMMA.16816.F32.BF16 R4", "wait", 300, 250),
        ("+0x0150", "math_pipe_throttle", 300, 250),
    ],
)
def test_products_keep_the_units_busy_with_few_warps(matrix):
    assert found("occupancy", waiting(12, matrix)) == []


def test_warps_that_wait_for_copies_and_products_that_run_by_themselves_are_not_too_few():
    waits = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", "long_scoreboard", 1500, 1400)
    assert found("occupancy", waiting(12, waits)) == []


def test_matrix_instructions_that_wait_for_their_data_keep_no_unit_busy():
    one = ("HMMA.16816.F32.BF16 R4", "long_scoreboard", 300, 300)
    assert len(found("occupancy", waiting(12, one))) == 1


def test_waits_during_which_another_warp_was_issued_lose_nothing():
    load = ("LDG.E R4, [R2]", "long_scoreboard", 900, 40)
    work = ("FFMA R1", "selected", 100, 0)
    shape = {"registers": 255, "block_threads": 128, "occupancy": 120_000, "waves": 4000}
    for rule in ("stall", "occupancy"):
        assert found(rule, sampled(load, work, **shape)) == []
    assert found("uncoalesced", sampled(("LDG.E R4, [R2]", "lg_throttle", 900, 40), work)) == []


def test_a_grid_that_does_not_fill_the_device_is_the_limit_whatever_a_block_takes():
    for occupancy in (12, 100):
        (one,) = found("occupancy", waiting(occupancy, waves=60))
        assert "its grid brings no more than" in one.title and "fewer blocks" in one.remedy
        assert any("0.06 waves" in line for line in one.evidence)


def test_without_the_samples_in_which_nothing_was_issued_low_occupancy_is_no_problem_yet():
    load, work = ("LDG.E", "long_scoreboard", 900, 0), ("FFMA", "selected", 100, 0)
    assert (
        found("occupancy", sampled(load, work, registers=255, block_threads=128, occupancy=120_000, waves=4000)) == []
    )


def test_a_queue_full_of_the_widest_accesses_is_full_of_data():
    work = ("FFMA R1", "selected", 600, 0)
    for text in ("STG.E.128 [R2], R4", "@!P1 LDG.E.128.CONSTANT R4, [R2]", "LD.E.128 R4, [R2]"):
        assert found("uncoalesced", sampled((text, *FULL), work)) == []
    for text in ("STG.E [R2], R4", "LDG.E.64 R4, [R2]", "+0x0120"):
        (one,) = found("uncoalesced", sampled((text, *FULL), work))
        assert "neighbouring elements" in one.remedy


def test_spilled_registers_are_not_called_scattered_accesses():
    (one,) = found("uncoalesced", sampled(("STL.64 [R1+0x8], R4", *FULL), ("FFMA R1", "selected", 600, 0)))
    assert "local memory" in one.remedy and "neighbouring" not in one.remedy
