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
    assert slower_by(0.5) == pytest.approx(1.0)
    assert slower_by(0.0) == slower_by(-1.0) == 0.0
    assert slower_by(7.0) == slower_by(0.96)  # of several threads


@pytest.mark.parametrize(
    ("shapes", "each_ns", "whole"),
    [(False, 100, 300), (True, 100, 550), (False, 1000, 2200), (True, 1000, 2200)],
)
def test_an_event_costs_its_calls_and_what_is_beside_them(shapes: bool, each_ns: int, whole: float) -> None:
    """Cheap events a constant of the processor's; those whose data was fetched from memory in proportion."""
    cost = {"callbacks_ns": 1000 * each_ns, "flush_ns": 50, "events": 1000}
    assert cost_ns(cost, shapes) == 1000 * whole + 50
    # a run of which a tenth was spent so: what is left is nine tenths
    meta = {"percent": 10.0 * each_ns / whole, "callbacks_ns": 1000 * each_ns, "events": 1000}
    assert overhead(told(cost=meta, asked={"shapes": shapes})) == Overhead(pytest.approx(1 / 9), False)


@pytest.mark.parametrize(("steps_ms", "share"), [(100, 0.1), (50, 0.2), (10, 0.25)])
def test_what_is_added_is_stated_of_the_steps(steps_ms: int, share: float) -> None:
    """Of a run of 100 ms, a tenth was spent on measuring: in its steps, but for a run that is mostly set-up."""
    profile = build(
        f"""
        process train.py | pid=5
          thread main
            phase step | call_time={steps_ms * 1_000_000}/10
        """
    )
    profile.meta.update(
        cost={"percent": 100 / 22, "callbacks_ns": 1e8 / 22, "events": 0}, processes=[{"wall_ns": 100_000_000}]
    )
    found = overhead(profile)
    assert found is not None and found.share == pytest.approx(share / (1 - share))


def test_steps_that_were_left_out_win_over_the_estimate_where_they_tell() -> None:
    stated = {"percent": 50.0}
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
        ({"cost": {"percent": 50.0}}, "overhead about 100 %"),
        ({"cost": {"percent": 50.0}, "processes": [duty(1.4, 1.35, 1.45)]}, "overhead 40 %"),
    ):
        profile = told(**meta)
        assert cost_text(cost(profile)) == said
        assert said in trust(profile, None, 0)
