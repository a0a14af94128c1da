"""The table of steps: rows of consecutive steps, histogram and slowest, whoever made them and however they are added."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline._histogram import bin_of, middle_of
from leadline.profiles.step_rows import (
    ADDITIVE,
    MOST_SLOWEST,
    MOST_SPANS,
    StepRows,
    added,
    between,
    of_steps,
    one_step,
    together,
)
from leadline.steps.recorded import Recorded

WALLS = st.lists(st.integers(1, 10**12), min_size=1, max_size=120)


def rows(walls: list[int], first: int = 0) -> StepRows:
    return of_steps(
        one_step(first + number, wall, operators=number, running_ns=wall // 2) for number, wall in enumerate(walls)
    )


@settings(deadline=None, max_examples=40)
@given(WALLS)
def test_every_step_is_in_one_row(walls: list[int]) -> None:
    made = rows(walls)
    assert len(made.spans) <= MOST_SPANS
    assert made.count == len(walls) == sum(made.walls.values())
    assert sum(span["wall_ns"] for span in made.spans) == sum(walls)
    assert [one["wall_ns"] for one in made.slowest] == sorted(walls, reverse=True)[:MOST_SLOWEST]
    sizes = {span["count"] for span in made.spans[:-1]}
    assert len(sizes) <= 1


@settings(deadline=None, max_examples=40)
@given(st.lists(WALLS, min_size=2, max_size=4))
def test_ranks_are_added_in_any_order_and_grouping(ranks: list[list[int]]) -> None:
    parts = [rows(walls) for walls in ranks]
    whole = together(parts)
    assert len(whole.spans) <= MOST_SPANS
    for order in itertools.permutations(parts):
        assert together(order) == whole
    assert together([together(parts[:2]), *parts[2:]]) == whole
    assert together([parts[0], together(parts[1:])]) == whole
    for name in ADDITIVE:
        assert added(whole.spans)[name] == sum(added(part.spans)[name] for part in parts)


@settings(deadline=None, max_examples=40)
@given(WALLS, st.integers(0, 120))
def test_what_lies_between_two_states_is_what_was_added(walls: list[int], cut: int) -> None:
    before, now = walls[: min(cut, len(walls))], walls
    made = between(rows(now), rows(before) if before else StepRows())
    later = walls[len(before) :]
    assert made.count == len(later) == sum(made.walls.values())
    for name in ADDITIVE:
        alone = [one_step(k, w, operators=k, running_ns=w // 2) for k, w in enumerate(walls)][len(before) :]
        assert sum(span[name] for span in made.spans) == sum(one[name] for one in alone)
    assert sum(max(span["running_ns"], 0) for span in made.spans) == sum(wall // 2 for wall in later)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 2**44))
def test_a_bin_is_near_its_walls(wall: int) -> None:
    assert abs(middle_of(bin_of(wall)) - wall) <= max(0.033 * wall, 16)


def test_thirds_and_warm_up() -> None:
    walls = [900, 400, *[100] * 31, *[130] * 33, *[160] * 33]
    found = Recorded(rows(walls))
    assert [one["wall_ns"] for one in found.warm_up] == [900, 400]
    first, middle, last = found.thirds
    assert first["count"] + middle["count"] + last["count"] == len(walls)
    assert middle["wall_ns"] / middle["count"] < 150 < last["wall_ns"] / last["count"] <= 160
    assert abs(found.quantile_ns(0.5) - 130) < 5
    assert found.mean_of("running_ns") == np.mean([wall // 2 for wall in walls[2:]])


def test_neighbours_that_are_alike_say_less_than_as_many_that_are_not() -> None:
    """A machine that is busy for half of the run: single steps scatter as much as when busy and quiet ones mix."""
    apart, mixed = [100] * 48 + [140] * 48, [100, 140] * 48
    errors = [Recorded(rows(walls)).standard_error_ns for walls in (apart, mixed)]
    assert errors[0] > 5 > errors[1]


def test_one_accident_widens_no_interval() -> None:
    """A step of a hundred times the others' length in the middle: another job on the machine."""
    walls = [100 + number % 7 for number in range(40)]
    walls[17] = 10_000
    found = Recorded(rows(walls))
    assert found.accident is not None and found.accident["first"] == 17
    assert found.standard_error_ns < 5
    assert Recorded(rows(walls[:17])).accident is None
