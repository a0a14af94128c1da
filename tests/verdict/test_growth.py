"""The parts of a run that are compared to find what grows: about as many steps in each, whenever segments were kept."""

from __future__ import annotations

import pytest

from leadline.profiles.build import build
from leadline.profiles.tables import Tables
from leadline.verdict.growth import steps_of, thirds


def segment(steps: int) -> Tables:
    marks = f"phase step | call_time={steps * 10}/{steps}" if steps else "python main @ /home/ada/train.py:3"
    return build(f"process train.py | pid=5\n  thread main | tid=5\n    {marks}").tables


@pytest.mark.parametrize(
    ("kept", "borders"),
    [
        ((0, 2, 100, 205, 290, 300), (0, 100, 205, 300)),
        ((0, 0, 565, 599), (0, 565, 599)),  # half of a run in its imports
        ((40, 80, 120, 160), (40, 80, 120, 160)),
        ((0, 0, 0, 0), (0, 0, 0, 0)),  # no steps are known
    ],
)
def test_three_parts_of_a_run_have_about_as_many_steps_each(kept, borders):
    assert tuple(steps_of(one) for one in thirds([segment(steps) for steps in kept])) == borders
