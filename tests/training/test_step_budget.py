"""A budget for measuring: whole steps rest, the mean cost stays, and what is said of a step is of those measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leadline
from leadline.capture.training import profiler as profiler_module
from leadline.capture.training.step_budget import ROLLING_PERCENT, StepBudget
from leadline.profiles import open_profile
from leadline.report.training import render, summarize
from leadline.training import build_profiler

MS = 1_000_000


class Loop:
    """Steps of so many ms that cost so much where they are measured, on a clock of its own."""

    def __init__(self, step_ms: float, cost_ms: float, percent: float) -> None:
        self.now = self.cost = 0.0
        self._step, self._cost = step_ms * MS, cost_ms * MS
        self.budget = StepBudget(percent, lambda: self.cost, lambda: int(self.now))
        self.measured: list[bool] = []

    def run(self, steps: int) -> Loop:
        measured = True
        for _ in range(steps):
            self.now += self._step + self._cost * measured
            self.cost += self._cost * measured
            self.measured.append(measured)
            measured = self.budget.next_is_measured(measured)
        return self


@pytest.mark.parametrize("cost_ms", [0.5, 2.0, 10.0, 90.0, 500.0])
def test_the_mean_cost_stays_at_the_budget_whatever_a_step_costs(cost_ms: float) -> None:
    loop = Loop(100, cost_ms, 1.0).run(20_000)
    share = 100 * loop.cost / loop.now
    assert share <= 1.0 + 100 * cost_ms * MS / loop.now  # of the step that is not paid for yet
    assert share > 0.9 or all(loop.measured)
    assert all(loop.measured) == (cost_ms < 1.0)


def test_rests_are_of_no_fixed_length() -> None:
    """What a loop does every so many steps is met as often as it comes."""
    measured = Loop(100, 5, 1.0).run(20_000).measured
    number = sum(measured)
    assert number == pytest.approx(20_000 / 5, rel=0.1)
    for period in (2, 3, 5, 10):
        met = sum(measured[::period])
        assert met == pytest.approx(number / period, rel=0.25), period


def test_a_stretch_without_cost_saves_no_more_than_a_few_steps() -> None:
    loop = Loop(100, 5, 1.0).run(1000)
    loop.now += 3600e9  # an evaluation of an hour
    before = len(loop.measured)
    loop.run(200)
    assert sum(loop.measured[before:]) < 80


def test_a_cost_that_begins_at_zero_again_is_that_of_a_new_file() -> None:
    loop = Loop(100, 5, 1.0).run(100)
    loop.cost = 0.0
    assert 10 < sum(loop.run(100).measured[100:]) < 40


def trained(folder: Path, steps: int, **config: object) -> object:
    profiler = build_profiler(enable=True, trace_dir=str(folder), start_step=3, end_step=5, rank=0, **config)
    assert profiler is not None
    profiler.start(0)
    for step in range(steps):
        with leadline.region("work"):
            pass
        profiler.step(step)
    profiler.stop()
    return profiler


class Alternating:
    """Stands for the budget: every third step."""

    def __init__(self, percent: float, cost: object) -> None:
        self.steps = 0

    def next_is_measured(self, measured: bool) -> bool:
        self.steps += 1
        return self.steps % 3 == 0


def test_a_step_is_measured_whole_or_not_at_all_and_the_window_always(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(profiler_module, "StepBudget", Alternating)
    profiler = trained(tmp_path, 12, budget=1.0)
    measured = {0, 3, 6, 9} | {3, 4}
    profile = open_profile(str(profiler.path))
    (region,) = profile.tree.find(kind="region", name="work")
    assert region.exclusive("call_time").count == len(measured)
    (steps,) = profile.tree.find(kind="phase", name="step")
    assert steps.exclusive("call_time").count == len(measured)
    assert profile.window.steps == (3, 4)
    facts = json.loads(profiler.path.with_suffix(".json").read_text())
    assert (facts["steps"], facts["measured_steps"]) == (12, len(measured))
    assert 0 < facts["measured_sum_ns"] < facts["steps_sum_ns"]
    summary = summarize(profiler.path)
    assert (summary.steps.count, summary.steps.measured) == (12, len(measured))
    assert "were measured in 5 of them" in render(summary)


@pytest.mark.parametrize(
    ("config", "percent"),
    [({}, None), ({"roll_minutes": 5.0}, ROLLING_PERCENT), ({"roll_minutes": 5.0, "budget": 0.0}, None), ({"budget": 3}, 3.0)],
)  # fmt: skip
def test_files_that_roll_have_a_budget_and_others_when_they_ask(tmp_path: Path, monkeypatch, config, percent) -> None:
    asked = []
    monkeypatch.setattr(
        profiler_module, "StepBudget", lambda share, cost: asked.append(share) or Alternating(share, cost)
    )
    trained(tmp_path, 2, **config)
    assert asked == ([] if percent is None else [percent])


@pytest.mark.parametrize("wrong", [-1, 101, float("nan")])
def test_a_budget_is_a_percentage(wrong: float) -> None:
    with pytest.raises(leadline.ProfileError, match="budget cannot be"):
        build_profiler(enable=True, budget=wrong)


def test_a_child_that_is_forked_in_a_rest_is_measured(tmp_path: Path) -> None:
    import os

    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        session = leadline.capture.current.CURRENT.session
        session.pause("budget")
        child = os.fork()
        if child == 0:
            with leadline.region("of the child"):
                pass
            os._exit(0)
        os.waitpid(child, 0)
        session.resume("budget")
    profile = open_profile(str(tmp_path / "x.leadline"))
    assert [node.exclusive("call_time").count for node in profile.tree.find(kind="region", name="of the child")] == [1]
