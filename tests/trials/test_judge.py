"""Verdicts of time: known changes, noise, and how often two equal programs are called different."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.compare.statistics import paired_change
from leadline.trials.equality import Spread
from leadline.trials.judge import change, judged
from leadline.trials.model import CANNOT_COMPARE, FASTER, NO_DIFFERENCE, SLOWER, Predicted
from leadline.trials.run import Run
from leadline.trials.variant import Variant

_VARIANT = Variant("x", ("python",), ".")


def _runs(times: list[float]) -> list[Run | None]:
    record = {"values": [[1, 1.0]], "digest": "a", "steps": 30}
    return [Run("x", 0, record, step_ns=one * 1e6) for one in times]


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        ([100, 101, 99, 100, 100], [70, 71, 69, 70, 70], FASTER),
        ([100, 101, 99, 100, 100], [120, 121, 119, 120, 121], SLOWER),
        ([100, 101, 99, 100, 100], [100, 100, 99.5, 100.5, 100], NO_DIFFERENCE),
        ([100, 300, 50, 200, 80], [90, 100, 150, 60, 250], CANNOT_COMPARE),
        ([100, 101], [50, 51], CANNOT_COMPARE),
    ],
)
def test_verdicts(base: list[float], other: list[float], verdict: str) -> None:
    row = judged(_VARIANT, _runs(base), _runs(other), Spread(), None, "")
    assert row.verdict == verdict


def test_a_prediction_holds_where_its_range_has_the_median() -> None:
    base, other = _runs([100, 101, 99, 100, 100]), _runs([70, 71, 69, 70, 70])
    assert judged(_VARIANT, base, other, Spread(), Predicted(-0.25, -0.35, -0.2, "amp"), "").held is True
    assert judged(_VARIANT, base, other, Spread(), Predicted(-0.1, -0.2, -0.05, "amp"), "").held is False


def test_larger_batches_are_compared_by_the_sample() -> None:
    found = change(_runs([100.0] * 5), _runs([160.0] * 5), 2.0)
    assert found is not None
    assert found.median == pytest.approx(-0.2)


def test_rounds_in_which_one_side_did_not_run_are_left_out() -> None:
    found = change([*_runs([100, 100]), None], _runs([50, 50, 500]))
    assert found is not None
    assert (found.rounds, found.median) == (2, pytest.approx(-0.5))


@pytest.mark.parametrize("rounds", [5, 8, 15])
def test_equal_programs_are_called_different_in_at_most_one_trial_of_twenty(rounds: int) -> None:
    random = np.random.default_rng(rounds)
    trials = 400
    wrong = 0
    for _ in range(trials):
        _, low, high = paired_change(np.exp(random.normal(0, 0.03, rounds)).tolist())
        wrong += not low <= 0 <= high
    assert wrong / trials < 0.05 + 2 * (0.05 * 0.95 / trials) ** 0.5


def test_the_interval_narrows_with_rounds_and_finds_a_change_of_five_percent_in_noise_of_three() -> None:
    random = np.random.default_rng(1)
    few, many = (paired_change((0.95 * np.exp(random.normal(0, 0.03, count))).tolist()) for count in (5, 20))
    assert many[2] - many[1] < few[2] - few[1]
    assert many[2] < 0
