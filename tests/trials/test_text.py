"""The table of a trial, of rows that are made up."""

from __future__ import annotations

import pytest

from leadline.trials.model import EQUAL, FASTER, UNKNOWN, Change, Equality, Row, Trial
from leadline.trials.text import table


def _trial(last: float | None, kind: str, sentence: str) -> Trial:
    rows = (
        Row("baseline", "baseline", "", 2e6, equality=Equality("baseline", "", last)),
        Row("x", FASTER, "faster by 9 % to 11 %", 1.8e6, Change(-0.1, -0.11, -0.09, 5), Equality(kind, sentence, last)),
    )
    return Trial("train.py", rows, 15, 5, "optimizer", 5, 0.01, (), {})


@pytest.mark.parametrize(
    ("last", "head", "cell"),
    [(2.5, "loss after 20 steps", "2.5000 (equal)"), (None, "results after 20 steps", "equal")],
)
def test_what_was_computed_is_told_with_and_without_a_loss(last: float | None, head: str, cell: str) -> None:
    text = table(_trial(last, EQUAL, "bitwise identical"))
    assert head in text.splitlines()[0]
    assert cell in text.splitlines()[2]


def test_a_faster_step_says_what_was_not_compared_and_what_was_compared_in_part() -> None:
    assert "faster by 9 % to 11 %; nothing is compared" in table(_trial(None, UNKNOWN, "nothing is compared"))
    partly = "bitwise identical in 10 of 99 parameters, and in the norm of each tensor"
    assert f"faster by 9 % to 11 %; {partly}" in table(_trial(2.5, EQUAL, partly))
