"""Quantiles of the histogram against sorting all values."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline._histogram import Histogram, merged

VALUES = st.lists(st.integers(0, 2**42), min_size=1, max_size=200)


def filled(values: list[int], scale: int = 1) -> Histogram:
    made = Histogram(scale)
    for value in values:
        made.add(value)
    return made


@settings(deadline=None, max_examples=100)
@given(VALUES, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_the_sorted_value_to_3_percent(values: list[int], share: float) -> None:
    exact = sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
    assert abs(filled(values).quantile(share) - exact) <= max(exact / 32, 17)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=100), st.sampled_from([0.5, 0.99]))
def test_small_numbers_have_bins_of_their_own(values: list[int], share: float) -> None:
    exact = sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
    assert abs(filled(values, 1024).quantile(share) - exact) <= max(exact / 32, 0.02)


@settings(deadline=None, max_examples=50)
@given(VALUES, VALUES)
def test_two_merged_are_one_of_all_also_through_a_file(one: list[int], other: list[int]) -> None:
    whole = merged([filled(one), Histogram.from_json(filled(other).to_json())])
    assert whole.to_json() == filled([*one, *other]).to_json()


def test_bounded_whatever_the_number() -> None:
    made = Histogram()
    for value in range(0, 2**50, 2**33):
        made.add(value)
    assert len(made.bins) <= 640


def test_a_damaged_one_counts_nothing() -> None:
    good = filled([5, 500]).to_json()
    for damage in ({"bins": {"x": 1}}, {"bins": {"99999": 1}}, {"bins": {"3": -1}}, {"count": -1}, {"sum": "x"}):
        assert Histogram.from_json({**good, **damage}).count == 0
    assert Histogram.from_json(None).quantile(0.5) == 0
