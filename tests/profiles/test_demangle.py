"""C++ names as they were written, those too long for the C++ library's demangler among them."""

from __future__ import annotations

import pytest

from leadline.profiles.demangle import LONGEST, cut_name, demangler

FRONT = "_ZN2ck12_GLOBAL__N_16kernelINS_4GemmItPKfLNS_4ModeE1ELb0ENS_8SequenceIJ"
NUMBERS = "".join(f"Li{number}E" for number in range(300))
LONG = FRONT + NUMBERS + "EEEEEEvT_PT0_"


def test_a_name_of_composable_kernel_is_read_as_far_as_it_can_be() -> None:
    assert len(LONG) > LONGEST
    text = demangler()(LONG)
    assert text.startswith(
        "void ck::(anonymous namespace)::kernel<ck::Gemm<unsigned short, float const*, (ck::Mode)1, false, "
        "ck::Sequence<0, 1, 2, 3, "
    )
    assert text.endswith("> > >(... #3fc46f1e)")


def test_names_that_differ_only_behind_what_can_be_read_stay_apart() -> None:
    other = FRONT + NUMBERS + "Li7EEEEEEEvT_PT0_"
    one, two = map(demangler(), (LONG, other))
    assert one != two and one.partition("(... #")[0] == two.partition("(... #")[0]


def test_types_of_compilers_for_gpus_are_known() -> None:
    assert demangler()("_Z1fDF16bDB8_DU8_") == "f(__bf16, _BitInt(8), unsigned _BitInt(8))"
    assert demangler()("_Z5DF16_v") == "DF16_()"
    assert demangler()("gemm") == "gemm"


@pytest.mark.parametrize("most", [80, 100, 500, LONGEST])
def test_what_is_cut_is_no_longer_than_asked_and_can_be_read(most: int) -> None:
    cut = cut_name(LONG, most)
    assert 0 < len(cut) <= most and demangler()(cut).startswith("void ck::(anonymous namespace)::kernel<")


@pytest.mark.parametrize("name", ["_Z6kernelIiEvv", "_ZN1a1bEv", "_ZN99", "_ZN", "_ZN1aILi", "gemm"])
def test_names_without_a_template_or_with_damage_are_not_cut(name: str) -> None:
    assert cut_name(name, 5) == ""


def test_reading_ends_however_a_name_is_damaged() -> None:
    for length in range(0, len(LONG), 7):
        cut_name(LONG[:length])
    for at in range(3, len(FRONT)):
        for letter in "9ELSID_":
            demangler()(LONG[:at] + letter + LONG[at + 1 :])
