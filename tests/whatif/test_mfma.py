"""Rates of AMD's matrix instructions, against the peaks of data sheets, and which one a kernel's name says."""

from __future__ import annotations

import pytest

from leadline.hardware.gpus import find_gpu
from leadline.hardware.mfma import architecture_of, best, instructions, of_kernel

TENSILE = "Cijk_Ailk_Bljk_{types}_MT128x128x32_{shape}_SN_1LDSB0_APM1"


@pytest.mark.parametrize(
    ("name", "chip", "megahertz", "units"),
    [
        ("MI300X", "gfx942", 2100, 304),
        ("MI325X", "gfx942", 2100, 304),
        ("MI355X", "gfx950", 2400, 256),
        ("MI250X", "gfx90a", 1700, 110),
        ("MI210", "gfx90a", 1700, 104),
    ],
)
def test_the_fastest_instruction_of_a_type_gives_the_peak_of_the_data_sheet(name, chip, megahertz, units) -> None:
    gpu = find_gpu(f"AMD Instinct {name}")
    assert gpu is not None and gpu.multiprocessors == units and architecture_of(f"AMD Instinct {name}") == chip
    compared = 0
    for precision, tflops in gpu.peak_tflops.items():
        if (found := best(chip, precision)) is not None:
            assert found.flops_per_cycle * units * megahertz * 1e6 / 1e12 == pytest.approx(tflops, rel=0.01), precision
            compared += 1
    assert compared >= 3


def test_instructions_of_several_blocks_and_those_of_an_older_chip_reach_less() -> None:
    rates = {str(one): one.flops_per_cycle for one in instructions("gfx942", "bf16")}
    assert rates["16x16x16"] == rates["32x32x8"] == 2048
    assert rates["32x32x4, 2 blocks"] == rates["4x4x4, 16 blocks"] == 1024
    newer = {str(one): one.flops_per_cycle for one in instructions("gfx950", "bf16")}
    assert newer["16x16x32"] == 4096 and newer["16x16x16"] == 2048
    assert instructions("gfx1100", "bf16") == ()


@pytest.mark.parametrize(
    ("types", "shape", "chip", "said"),
    [
        ("BBS_BH", "MI16x16x16x1", "gfx942", "16x16x16"),
        ("HHS_BH", "MI32x32x4x2", "gfx942", "32x32x4, 2 blocks"),
        ("BBS_BH_Bias_HA_S_SAV_UserArgs", "MI16x16x1", "gfx950", "16x16x32"),  # k is not said: the fastest
        ("F8F8S_BSS", "MI32x32x16x1", "gfx942", "32x32x16"),
        ("SB", "MI16x16x4x1", "gfx90a", "16x16x4"),
    ],
)
def test_a_kernel_of_tensile_says_its_instruction(types: str, shape: str, chip: str, said: str) -> None:
    assert str(of_kernel(chip, TENSILE.format(types=types, shape=shape))) == said


@pytest.mark.parametrize(
    ("tile", "said", "rate"),
    [("32x32x8", "32x32x8", 2048), ("64x16x4", "16x16x4, 4 blocks", 1024), ("16x16x16", "16x16x16", 2048)],
)
def test_a_kernel_of_miopen_says_the_tile_of_its_instruction(tile: str, said: str, rate: float) -> None:
    found = of_kernel("gfx942", f"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt{tile}_ws1x1_wr2x2")
    assert found is not None and str(found) == said and found.flops_per_cycle == rate


@pytest.mark.parametrize(
    "name", ["ampere_sgemm_128x64_nn", TENSILE.format(types="BBS_BH", shape="MI99x99x1x1"), "Cijk_"]
)
def test_other_names_say_none(name: str) -> None:
    assert of_kernel("gfx942", name) is None and of_kernel("gfx000", name) is None


def test_the_chip_is_what_the_device_says_else_what_its_name_does() -> None:
    assert architecture_of("AMD Instinct MI300X", "gfx950:sramecc+:xnack-") == "gfx950"
    assert architecture_of("AMD Radeon RX 7900 XTX") == ""
