"""Steps that only batches time: of their lengths sums are kept, so nobody knows a median."""

from __future__ import annotations

from leadline.profiles.build import build
from leadline.report.steps import sentences, shown_steps
from leadline.steps import Steps
from leadline.steps.of_profile import steps_of

MS = 1_000_000


def test_no_median_is_made_up_of_sums() -> None:
    lines = (
        "process train.py | pid=5",
        "  thread main | tid=5 wall_ns=200000000",
        f"    phase turn | call_time={100 * MS}/10",
        "    python main @ /home/ada/train.py:44",
        "      phase optimizer | time=10/10 call_time=10/10",
    )
    profile = build("\n".join(lines))
    found, shown = steps_of(profile), shown_steps(profile)
    assert isinstance(found, Steps)
    assert (found.main.timed_by, found.main.mean_ns > 0, found.main.median_ns) == ("batches", True, 0.0)
    assert shown is not None and "median" not in " ".join(sentences(shown))
