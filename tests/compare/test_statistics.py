"""The statistics against what can be counted by hand and against draws without a change."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from leadline.compare.statistics import SURE_RATIO, discoveries, ratios


def test_p_values_are_those_of_all_arrangements():
    a, b = np.array([[1.0, 2, 3, 7, 9]]), np.array([[4.0, 5, 6, 8, 10]])
    pooled = sorted([*a[0], *b[0]])
    observed = sum(x < y for x in a[0] for y in b[0])
    counts = [sum(x < y for x in left for y in set(pooled) - set(left)) for left in combinations(pooled, 5)]
    assert ratios(a, b).slower[0] == pytest.approx(np.mean(np.array(counts) >= observed))


def test_interval_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    a, b = random.lognormal(0, 0.2, (4000, 5)), random.lognormal(np.log(1.1), 0.2, (4000, 5))
    found = ratios(a, b)
    assert 0.945 <= np.mean(found.low <= 1.1) <= 0.965
    assert 0.945 <= np.mean(found.high >= 1.1) <= 0.965
    same = ratios(a, random.lognormal(0, 0.2, (4000, 5)))
    assert np.mean(same.slower <= 0.05) <= 0.055


def test_few_runs_claim_only_large_changes():
    assert ratios(np.array([[100.0]]), np.array([[SURE_RATIO * 99]])).slower[0] == 1
    assert ratios(np.array([[100.0]]), np.array([[SURE_RATIO * 101]])).slower[0] == 0
    assert ratios(np.array([[100.0, 300]]), np.array([[200.0, 400]])).slower[0] == 1  # the runs overlap


def test_zeros_are_no_numbers_that_break_anything():
    found = ratios(np.zeros((2, 1)), np.array([[0.0], [5.0]]))
    assert found.estimate[0] == 1
    assert found.estimate[1] == np.inf
    assert discoveries(np.zeros(0)).tolist() == []
    assert discoveries(np.array([0.001, 0.9, 0.01, 0.04])).tolist() == [True, False, True, False]
