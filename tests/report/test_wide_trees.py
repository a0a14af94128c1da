"""What a report takes grows with what it shows, not with the nodes: no Python code runs for each of them."""

import sys
from types import FrameType

from leadline.profiles.build import build
from leadline.report.build import build_report
from leadline.report.model import ReportOptions

_LINES = 40
"""More lines than a list of places has."""


def calls_of_a_report(operators: int) -> int:
    """Calls of Python functions that a report of a program with so many operators on each line makes."""
    below = "\n".join(
        f"""        operator aten::mm{number % 7} [{number}] | time=900000/10 call_time=1000000/10
          operator aten::add [{number}] | time=90000/10 call_time=90000/10"""
        for number in range(operators)
    )
    lines = "\n".join(f"      python run @ train.py:{10 + number}\n{below}" for number in range(_LINES))
    profile = build(f"""
    python train @ train.py:3
{lines}
      phase optimizer | time=1000000/10 call_time=1000000/10
        operator Optimizer.step#SGD.step | time=1000000/10 call_time=1000000/10
    """)
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        build_report(profile, ReportOptions(verdict=True))
    finally:
        sys.setprofile(None)
    return made


def test_twenty_times_the_nodes_take_hardly_more_calls() -> None:
    calls_of_a_report(2)  # imports
    few, many = calls_of_a_report(2), calls_of_a_report(40)
    assert many < 1.3 * few, (few, many)
