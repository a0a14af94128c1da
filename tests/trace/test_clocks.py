"""Clocks related by messages: the truth lies within the stated bounds, and what contradicts itself is refused."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.trace.clocks import ClockError, hull_relation


def pairs(seed: int, count: int = 60):
    """Messages between two clocks of a random offset and drift, with delays that differ by direction."""
    random = np.random.default_rng(seed)
    offset, drift = int(random.integers(-(10**12), 10**12)), float(random.uniform(-1e-4, 1e-4))
    begin = int(random.integers(10**9, 10**15))

    def true(a):
        return a + offset + np.rint(drift * (a - begin)).astype(np.int64)

    sent = np.sort(begin + random.integers(0, 10**9, (2, count)), axis=1)
    delay = 25_000 + random.exponential([[40_000], [90_000]], (2, count)).astype(np.int64)
    forth = (sent[0], true(sent[0]) + delay[0])
    back = (sent[1] + delay[1], true(sent[1]))
    return forth, back, true, begin


@pytest.mark.parametrize("part", range(4))
def test_the_truth_lies_within_the_bounds(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        forth, back, true, begin = pairs(seed)
        found = hull_relation(forth, back)
        when = np.linspace(begin, begin + 10**9, 7).astype(np.int64)
        error = np.abs(found.b_ns(when) - true(when))
        assert (error <= found.half_width_ns + 2).all(), seed
        assert found.half_width_ns < 1_000_000
        assert found.pairs == 120


def test_more_pairs_tell_more() -> None:
    widths = [hull_relation(*pairs(1, count)[:2]).half_width_ns for count in (5, 40, 320)]
    assert widths[2] < widths[1] < widths[0]


def test_pairs_that_contradict_each_other_are_refused() -> None:
    forth, back, *_ = pairs(3)
    jumped = (forth[0], np.where(np.arange(forth[1].size) < 30, forth[1], forth[1] - 5_000_000))
    with pytest.raises(ClockError, match="contradict"):
        hull_relation(jumped, back)


def test_one_direction_is_not_enough() -> None:
    with pytest.raises(ClockError, match="both directions"):
        hull_relation(([1, 2, 3], [4, 5, 6]), ([], []))


def test_exact_messages_give_the_exact_relation() -> None:
    when = np.arange(0, 10**9, 10**8)
    found = hull_relation((when, when + 1_000), (when, when + 1_000))
    assert found.half_width_ns == 0
    assert found.b_ns(5).tolist() == 1_005
