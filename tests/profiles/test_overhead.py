"""How much longer a run is for being measured: what its file states, and what steps that were left out show."""

from __future__ import annotations

from typing import Any

import pytest

from leadline._own_cost import beside_ns, cost_ns, slower_by
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


def test_a_budget_counts_what_calls_cost_beside_them_and_writing() -> None:
    cost = {"callbacks_ns": 300, "flush_ns": 50, "events": 2}
    assert cost_ns(cost, shapes=False) == 350 + 2 * beside_ns(shapes=False)
    assert cost_ns(cost, shapes=True) == 350 + 2 * beside_ns(shapes=True) > cost_ns(cost, shapes=False)


def test_what_an_operator_costs_beside_the_calls_depends_on_whether_its_inputs_are_recorded() -> None:
    # A run of a second: a tenth in our calls, and so many events that as much again is beside them.
    for shapes in (False, True):
        cost = {"percent": 10.0, "callbacks_ns": 100e6, "events": 100e6 / beside_ns(shapes)}
        found = overhead(told(cost=cost, asked={"shapes": shapes}))
        assert found == Overhead(pytest.approx(0.25), False)  # 0.2 s of it, and 0.8 s without


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
