"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.units import counted, duration, in_unit, number, share, size


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_999, "1.00 ms"),
        (1_500_000, "1.50 ms"),
        (99_960_000, "100 ms"),
        (2_000_000_000, "2.00 s"),
        (119e9, "119 s"),
        (120e9, "2 min 00 s"),
        (7_384e9, "2 h 03 min"),
        (-1_500, "-1.50 µs"),
        (math.nan, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_duration(nanoseconds, text):
    assert duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1000, "1,000 B"), (1023, "1,023 B"), (1536, "1.50 KiB"), (1 << 30, "1.00 GiB"), (-2048, "-2.00 KiB")],
)
def test_size(count, text):
    assert size(count) == text


def test_shares_are_never_nan_and_never_hide_something_as_zero():
    assert share(1, 3) == "33 %"
    assert share(1, 0) == "n/a"
    assert share(1, 1_000_000) == "<0.1 %"
    assert share(0, 5) == "0 %"
    assert share(math.nan, 5) == "n/a"


def test_numbers_and_units_of_the_schema():
    assert number(1_234_567) == "1,234,567"
    assert number(2.5) == "2.50"
    assert in_unit(2048, "bytes") == "2.00 KiB"
    assert in_unit(500_000, "1e-6") == "0.50"
    assert in_unit(7, "1") == "7"


@given(st.integers(0, 10**18))
def test_a_duration_reads_back_within_its_three_digits(nanoseconds):
    text = duration(nanoseconds)
    scales = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
    words = text.replace(",", "").split()
    read = sum(float(value) * scales[unit] for value, unit in zip(words[::2], words[1::2], strict=True))
    coarsest = {"h": 30e9, "min": 0.5e9}.get(words[1], 0)
    assert abs(read - nanoseconds) <= max(0.006 * nanoseconds, coarsest, 0.5)


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1250, "1,250 steps")])
def test_a_count_has_its_noun_in_the_right_number(count: int, text: str) -> None:
    assert counted(count, "step") == text
