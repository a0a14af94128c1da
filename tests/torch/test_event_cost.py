"""What an operator and an allocation take in the monitor and the collector: instructions, and lines of the caches.

Lines are what costs time: between two events the program throws ours out of the caches.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from tests.counted import built, counts

FEW, MANY = 100, 300
OPERATORS = 8
"""A step of event_bench."""
OPERATOR = {"instructions": 775, "lines of code": 77, "lines of data": 69}
MEMORY = {"instructions": 455, "lines of code": 50, "lines of data": 36}
"""At most so many, begin and end of an operator, and an allocation or its end. Measured when they were set, with GCC 12:
735, 69, 62 and 431, 44, 32."""


@pytest.fixture(scope="module")
def program() -> Path:
    if platform.machine() != "x86_64":
        pytest.skip("the program throws code out of the caches on x86-64 only")
    return built("event_bench")


def step(program: Path, what: str) -> dict[str, float]:
    """Of one more, so that the start of the program is in no figure."""
    few, many = (counts(program, what, str(steps), caches=True) for steps in (FEW, MANY))
    each = {name: (many[name] - few[name]) / (MANY - FEW) for name in many}
    return {
        "instructions": each["Ir"],
        "lines of code": each["I1mr"],
        "lines of data": each["D1mr"] + each["D1mw"],
    }


def beyond(program: Path, what: str, number: int) -> dict[str, float]:
    """Of each, beyond throwing everything out of the caches as often."""
    found, nothing = step(program, what), step(program, "nothing")
    share = 1.0 if what == "operators" else 1 / OPERATORS
    return {name: (found[name] - nothing[name] * share) / number for name in found}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("what", "number", "most"), [("operators", OPERATORS, OPERATOR), ("memory", 2, MEMORY)])
def test_an_event_takes_no_more_than_it_did(program: Path, what: str, number: int, most: dict[str, int]) -> None:
    found = beyond(program, what, number)
    assert all(most[name] / 2 < value < most[name] for name, value in found.items()), found
