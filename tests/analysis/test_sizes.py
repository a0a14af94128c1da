"""Input sizes at which an operator is slow are named at its line, with the size or form that is faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.test_findings import training
from tests.analysis.test_place import known, on_line, operator

from leadline.analysis.analyze import analyze
from leadline.analysis.case import case_of
from leadline.analysis.rules.place import instead_at
from leadline.analysis.rules.place.sizes import largest_factor, next_short

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


def told(name: str, shapes: str) -> tuple[str, str]:
    profile = on_line(operator("", name, 5, 10, shapes))
    return known(profile), instead_at(case_of(profile), "/home/ada/train.py", 43)


@pytest.mark.parametrize(
    ("name", "shapes", "words"),
    [
        ("aten::_fft_r2c", "[[4,8,8101],[],[],[]]", "transforms 8,101 values, a prime"),
        ("aten::_fft_c2c", "[[4,8,4102],[],[],[]]", "transforms 4,102 values, with the prime factor 293"),
        ("aten::_fft_r2c", "[[4,8101,8192],[],[],[]]", ""),
        ("aten::_fft_r2c", "[[4,8,7000],[],[],[]]", ""),
        (ATTENTION, "[[2,8,1,32],[2,8,4096,32],[2,8,4096,32],[1,4096]]", "reads 4,096 keys and values for one query"),
        (ATTENTION, "[[2,8,1,32],[2,8,4096,32],[2,8,4096,32],[]]", ""),
        (ATTENTION, "[[2,8,4096,32],[2,8,4096,32],[2,8,4096,32],[4096,4096]]", ""),
        (ATTENTION, "[[2,8,1,32],[2,8,64,32],[2,8,64,32],[1,64]]", ""),
        ("aten::conv2d", "[[8,3,80,80],[3,1,11,11],[]]", "convolves each channel with a window of 11 x 11"),
        ("aten::conv2d", "[[8,3,80,80],[3,1,3,3],[]]", ""),
        ("aten::conv2d", "[[8,3,80,80],[3,3,11,11],[]]", ""),
    ],
)
def test_a_size_is_told_where_another_one_is_faster(name: str, shapes: str, words: str) -> None:
    said, instead = told(name, shapes)
    assert words in said
    assert bool(instead) == bool(words)


def test_what_to_do_names_the_size() -> None:
    assert "Transform 8,192 values" in told("aten::_fft_r2c", "[[4,8101]]")[1]
    assert "Transform 8,232 values" in told("aten::_fft_r2c", "[[4,8209]]")[1]  # 2^3 3 7^3
    assert "22 of 121 products" in told("aten::conv2d", "[[8,3,80,80],[3,1,11,11],[]]")[1]


def test_a_window_that_a_module_has_learnt_is_as_it_is() -> None:
    inside = operator("", "aten::conv2d", 5, 10, "[[8,3,80,80],[3,1,11,11],[]]")
    profile = training("python forward @ /home/ada/train.py:43", "  module Conv2d.dw", f"    {inside}")
    assert "window of 11" not in known(profile)


@given(st.integers(1, 200_000))
def test_factors_are_those_of_arithmetic(number: int) -> None:
    factor = largest_factor(number)
    assert number % factor == 0
    primes = [one for one in range(2, 448) if all(one % by for by in range(2, one))]
    rest = number
    for prime in primes:
        while rest % prime == 0:
            rest //= prime
    assert factor == (rest if rest > 1 else max([one for one in primes if number % one == 0], default=1))


@given(st.integers(1, 100_000))
def test_the_next_short_length_is_the_next_one(number: int) -> None:
    powers = [2**a * 3**b * 5**c * 7**d for a in range(18) for b in range(12) for c in range(8) for d in range(7)]
    lengths = np.array(powers)
    assert next_short(number) == lengths[lengths >= number].min()


@pytest.mark.parametrize(("each_us", "is_told"), [(4_000, False), (60, True)])
def test_an_optimizer_of_the_programs_is_told_of_its_calls_and_never_to_be_fused(each_us: int, is_told: bool) -> None:
    calls = 480
    inside = operator("  ", "aten::_linalg_eigh", each_us * calls / 10 / 1000, calls)
    phase = f'phase optimizer | time=0/10 call_time={each_us * calls * 1000}/10 detail={{"optimizer":"Shampoo"}}'
    profile = training("python main @ /home/ada/train.py:43", f"  {phase}", f"  {inside}", optimizer_ms=0)
    found = [one for one in analyze(profile).findings if one.rule == "optimizer_loop"]
    assert bool(found) == is_told
    for one in found:
        assert one.title.startswith("Shampoo runs 48 operators a step")
        assert "Construct it with" not in one.remedy and not one.scenario
