"""What the rules about the inside of kernels must not take for a problem, and what their words go by."""

from __future__ import annotations

import pytest
from tests.analysis.test_every_rule import sampled, waiting

from leadline.analysis.analyze import analyze
from leadline.analysis.rules.registers import functions
from leadline.profiles import Profile
from leadline.profiles.codetables import CodeLine, CodeTables
from leadline.profiles.tables import StringBuilder, Tables

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
        assert "its grid limits it to" in one.title and "fewer blocks" in one.remedy
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


CODE = "00000000000000aa"
WAITS = "FADD R9, R8, R4"


def with_code(profile, texts):
    """The same, with the text of a function; offsets as `sampled` draws them."""
    made = CodeTables()
    made.lines[CODE, "cast"] = [CodeLine(16 * at, text, "", 0) for at, text in enumerate(texts, 1)]
    strings = StringBuilder()
    for raw in profile.tables.strings.all_raw():
        strings.add(raw)
    details = profile.tables["frames"]["detail"].copy()
    for row, detail in enumerate(details.tolist()):
        if '"stall"' in profile.tables.strings[detail]:
            told = profile.tables.strings[detail][:-1] + f', "code": "{CODE}", "function": "cast"' + "}"
            details[row] = strings.add(told)
    columns = {**profile.tables.columns, **made.columns(strings), "strings": strings.columns()}
    columns["frames"] = {**profile.tables["frames"], "detail": details}
    return Profile(Tables(columns), profile.meta)


def waits_for(*before):
    """A kernel that waits for a result before the last of these instructions."""
    texts = [*before, WAITS]
    drawn = [(text, "short_scoreboard", 500, 400) if text is WAITS else (text, "selected", 90, 0) for text in texts]
    return with_code(sampled(*drawn)(), texts)


@pytest.mark.parametrize(
    "before",
    [
        ("LDS R4, [R2]", "FADD R1, R1, R1"),
        ("@!P0 LDS.128 R4, [R2+0x10]", "MUFU.EX2 R6, R7"),  # special functions wrote another one
        ("LDSM.16.M88.4 R4, [R2]", "SHFL.BFLY PT, R3, R4, 0x1, 0x1f"),
        ("MUFU.RCP R8, R7", "LDS.64 R8, [R2]"),  # the last writer counts
        ("LDS R4, [R2]", "@P0 MOV R4, RZ", "STS [R6], R4"),  # which may have written nothing
    ],
)
def test_results_of_shared_memory_are_told_by_the_registers_that_wait(before):
    (one,) = analyze(waits_for(*before), ["bank_conflicts"])
    assert "shared memory" in one.title and "cast.cu:2" in one.title


@pytest.mark.parametrize(
    "before",
    [
        ("MUFU.EX2 R4, R7", "LDS R6, [R2]"),
        ("SHFL.BFLY PT, R4, R4, 0x1, 0x1f", "FADD R1, R1, R1"),
        ("LDS R4, [R2]", "MUFU.EX2 R4, R4"),
        ("STS [R4], R8", "FADD R1, R1, R1"),  # a store writes no register
        ("LDS.64 R8, [R2]", "IMAD.WIDE R8, R1, R2, R3", "MOV R4, R5"),  # written anew since
    ],
)
def test_results_of_special_functions_and_shuffles_are_no_bank_conflicts(before):
    assert list(analyze(waits_for(*before), ["bank_conflicts"])) == []


def test_a_loop_waits_for_what_stands_behind_it():
    texts = [WAITS, "FFMA R1, R9, R9, R1", "LDS R4, [R2]", "BRA 0x10"]
    drawn = with_code(sampled((WAITS, "short_scoreboard", 500, 400), ("FFMA R1", "selected", 600, 0))(), texts)
    assert functions(drawn.tables)[CODE, "cast"].writer(16) == "LDS"
    assert functions(drawn.tables)[CODE, "cast"].writer(17) == ""
    assert len(list(analyze(drawn, ["bank_conflicts"]))) == 1


def counted(**values):
    """A hot kernel whose counters said so, in a tenth of its time."""
    from tests.analysis.test_every_rule import MS, called, inside

    words = "".join(f" {name}@0:7={value}/10" for name, value in {"counted_time": MS, **values}.items())
    return inside(called("aten::mm", 10, 1), f"  kernel cast | gpu_time@0:7={9 * MS}/10{words}")


def test_counters_know_bank_conflicts_and_pieces_of_loads():
    (one,) = found("bank_conflicts", counted(shared_wavefronts=1000, bank_conflicts=600))
    assert "spends 60 % of shared memory's passes on bank conflicts" in one.title
    assert found("bank_conflicts", counted(shared_wavefronts=1000, bank_conflicts=50)) == []
    (one,) = found("uncoalesced", counted(global_requests=100, global_sectors=3200))
    assert "touches 32 pieces of 32 bytes" in one.title
    assert found("uncoalesced", counted(global_requests=100, global_sectors=1600)) == []
