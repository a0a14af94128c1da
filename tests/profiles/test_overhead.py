"""How much longer a run is for being measured: what its file states, and what steps that were left out show."""

from __future__ import annotations

from typing import Any

import pytest

from leadline._own_cost import cost_ns, slower_by
from leadline.profiles.build import build
from leadline.profiles.overhead import Overhead, overhead
from leadline.report.phrases import cost_text
from leadline.report.provenance import cost
from leadline.verdict.trust import trust


def told(**meta: Any) -> Any:
    profile = build("thread MainThread\n  operator aten::linear | time=100")
    profile.meta.update(meta)
    return profile


def duty(ratio: Any, low: Any, high: Any) -> dict[str, Any]:
    return {"duty": {"slowdown": {"ratio": ratio, "low": low, "high": high, "blocks": 9}}}


def test_a_share_of_the_run_is_a_larger_share_of_the_run_without_measuring() -> None:
    # A second in which calls took a quarter, and as much beside them: half a second is left.
    assert slower_by(0.25) == pytest.approx(1.0)
    assert slower_by(0.0) == slower_by(-1.0) == 0.0
    assert slower_by(7.0) == slower_by(0.6)  # of several threads


def test_a_budget_counts_what_calls_cost_beside_them_and_writing() -> None:
    assert cost_ns({"callbacks_ns": 300, "flush_ns": 50, "events": 2}) == 650


def test_steps_that_were_left_out_win_over_the_estimate_where_they_tell() -> None:
    stated = {"percent": 25.0, "callbacks_ns": 1}
    assert overhead(told(cost=stated)) == Overhead(pytest.approx(1.0), False)
    assert overhead(told(cost=stated, processes=[duty(1.4, 1.35, 1.45)])) == Overhead(pytest.approx(0.4), True)
    assert overhead(told(cost=stated, processes=[duty(1.4, 0.9, 2.1)])) == Overhead(pytest.approx(1.0), False)
    assert overhead(told(cost=stated, processes=[duty(0.99, 0.98, 1.0)])) == Overhead(0.0, True)


@pytest.mark.parametrize(
    "meta",
    [
        {"cost": None},
        {"cost": 7},
        {"cost": {"percent": float("nan")}},
        {"cost": {"percent": True}},
        {"cost": {}, "processes": [None, 3, {"duty": 1}, duty("x", 1, 2), duty(float("nan"), 1, 2)]},
    ],
)
def test_what_is_no_number_says_nothing(meta: dict[str, Any]) -> None:
    assert overhead(told(**meta)) is None


def test_the_report_and_the_verdict_say_the_same_overhead() -> None:
    for meta, said in (
        ({"cost": {"percent": 25.0}}, "overhead about 100 %"),
        ({"cost": {"percent": 25.0}, "processes": [duty(1.4, 1.35, 1.45)]}, "overhead 40 %"),
    ):
        profile = told(**meta)
        assert cost_text(cost(profile)) == said
        assert said in trust(profile, None, 0)
