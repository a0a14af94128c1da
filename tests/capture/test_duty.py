"""Leaving out whole steps at random: which steps, what the file says, and how far the measured slowdown can be trusted."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import leadline
from leadline.capture import duty
from leadline.capture.duty import Duty, DutyKeeper, slowdown
from leadline.capture.errors import ProfileError
from leadline.report.provenance import meta

MS = 1_000_000


def blocks_of(
    draw: random.Random, ratio: float, count: int, noise: float, drift: float
) -> Iterator[tuple[bool, float]]:
    """The typical steps of `count` blocks of a program that gets slower by `drift` from block to block."""
    for number in range(count):
        measured = number % 2 == 0
        yield measured, 1e6 * (ratio if measured else 1.0) * math.exp(number * drift + draw.gauss(0, noise))


@pytest.mark.parametrize(("blocks", "drift"), [(11, 0.0), (41, 0.0), (41, 0.01)])
def test_the_interval_holds_the_true_slowdown_19_times_in_20_also_in_a_program_that_drifts(
    blocks: int, drift: float
) -> None:
    draw = random.Random(7)
    held = 0
    for _ in range(1000):
        found = slowdown(list(blocks_of(draw, 1.2, blocks, 0.05, drift)))
        assert found is not None
        held += found.low <= 1.2 <= found.high
    assert 920 <= held <= 985


def test_few_blocks_give_no_slowdown_and_blocks_that_are_no_neighbours_are_not_compared() -> None:
    assert slowdown(list(blocks_of(random.Random(1), 1.2, 8, 0.01, 0.0))) is None
    assert slowdown([(True, 1.0), (True, 1.0), (False, 1.0), (False, 1.0)] * 10) is None


def steps_measured(seed: str, percent: float, count: int = 40_000) -> list[bool]:
    one, now, found = Duty(percent, seed), 0, []
    for _ in range(count):
        found.append(one.border(now))
        now += 10 * MS
    return found


def test_about_as_many_steps_are_measured_as_asked_the_same_ones_on_all_ranks_and_the_first_ones_always() -> None:
    drawn = steps_measured("job", 20.0)
    assert drawn == steps_measured("job", 20.0)
    assert drawn != steps_measured("another job", 20.0)
    assert all(drawn[: int(duty.WARM_UP_S * 100)])
    assert 0.15 < sum(drawn) / len(drawn) < 0.25
    switches = [number for number, (one, other) in enumerate(itertools.pairwise(drawn)) if one != other]
    assert min(later - number for number, later in itertools.pairwise(switches)) >= 50  # half a second


def test_a_program_whose_measured_steps_take_longer_has_that_in_its_record() -> None:
    one, now = Duty(50.0, "seed"), 0
    measured = True
    for _ in range(30_000):
        measured = one.border(now)
        now += (12 if measured else 10) * MS
    told = one.facts()
    assert told["steps_measured"] + told["steps_left_out"] == 29_999
    assert told["slowdown"]["ratio"] == pytest.approx(1.2, rel=1e-6)


def test_steps_of_the_program_win_over_those_of_optimizers() -> None:
    switched: list[str] = []
    one = Duty(50.0, "seed")
    keeper = DutyKeeper(one, lambda: switched.append("off"), lambda: switched.append("on"), lambda told: None)
    for _ in range(10):
        keeper.border(given=True)
        keeper.border()
    assert sum(one.steps.values()) == 9


def test_the_profile_holds_the_measured_steps_only_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(duty, "WARM_UP_S", 0.0)
    monkeypatch.setattr(duty, "SETTLE_S", 0.0)
    monkeypatch.setattr(duty, "BLOCK_S", 0.001)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    output = tmp_path / "x.leadline"
    with leadline.profile(output, quiet=True, duty=40.0, cpu_sample=0.0):
        for _ in range(400):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    profile = leadline.open(output)
    told = profile.meta["processes"][0]["duty"]
    assert told["steps_measured"] + told["steps_left_out"] == 399  # the first one has no begin
    assert 16 <= told["steps_measured"] < 399
    calls = sum(node.exclusive("call_time").count for node in profile.tree.find(kind="operator", name="aten::linear"))
    assert calls == told["steps_measured"] + 1
    said = meta(profile, "x").estimates
    assert any("steps were measured, in blocks drawn at random" in sentence for sentence in said)
    assert any("A measured step took" in sentence for sentence in said)
    assert profile.meta["asked"]["duty"] == 40.0


def test_a_program_without_steps_is_measured_whole_and_says_why(tmp_path: Path) -> None:
    output = tmp_path / "x.leadline"
    with leadline.profile(output, quiet=True, duty=40.0):
        sum(range(1000))
    assert any("Every step was measured" in sentence for sentence in meta(leadline.open(output), "x").estimates)


@pytest.mark.parametrize("percent", [-1.0, 100.0])
def test_a_share_that_cannot_be_is_refused(percent: float) -> None:
    with pytest.raises(ProfileError, match="above 0 and below 100"):
        leadline.Options(duty=percent)


def test_a_trace_window_needs_steps_in_a_row() -> None:
    with pytest.raises(ProfileError, match="choose one"):
        leadline.Options.of({"duty": 20.0, "trace": "steps=3"})
