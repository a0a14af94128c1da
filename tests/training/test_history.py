"""A file every few minutes, and what they say of the run over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leadline
from leadline.capture.training import profiler as profiler_module
from leadline.cli.main import main
from leadline.report.training import summarize
from leadline.report.training.history import render_history, run_history
from leadline.training import build_profiler


class Clock:
    """Minutes that pass when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 10**12

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return 10**18 + self.now_ns


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(profiler_module, "time", found)
    return found


def rolled(folder: Path, clock: Clock, **config: object):
    """Nine steps of a minute each, a file every three."""
    profiler = build_profiler(
        enable=True, trace_dir=str(folder), start_step=4, end_step=8, roll_minutes=2.5, rank=0, budget=0, **config
    )
    profiler.start(0)
    for step in range(9):
        with leadline.region(f"work {step}"):
            pass
        clock.now_ns += 60 * 10**9
        profiler.step(step)
    profiler.stop()
    return profiler


def test_each_file_holds_its_own_steps_and_windows_go_on(tmp_path: Path, clock: Clock) -> None:
    profiler = rolled(tmp_path, clock)
    files = {}
    for side in tmp_path.glob("*.json"):
        facts = json.loads(side.read_text())
        assert facts["complete"]
        files[facts["first_step"]] = (facts, leadline.open(str(side.with_suffix(".leadline"))))
    assert sorted(files) == [0, 3, 6], "none was begun for nothing at the end"
    assert [files[first][0]["steps"] for first in (0, 3, 6)] == [3, 3, 3]
    assert [files[first][1].window.steps for first in (0, 3, 6)] == [(), (4, 5), (6, 7)]
    names = {first: {node.name for node in files[first][1].tree.walk() if node.kind == "region"} for first in (0, 3, 6)}
    assert names == {first: {f"work {first + i}" for i in range(3)} for first in (0, 3, 6)}
    assert profiler.path is not None
    assert summarize(profiler.path).steps.recorded == (6, 7)


def test_old_files_go(tmp_path: Path, clock: Clock) -> None:
    rolled(tmp_path, clock, max_files=2)
    assert len(list(tmp_path.glob("*.leadline"))) == 2
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_when_it_was_slow_and_what_took_longer(tmp_path: Path, clock: Clock, capsys) -> None:
    rolled(tmp_path, clock)
    sides = sorted(tmp_path.glob("*.json"), key=lambda side: json.loads(side.read_text())["first_step"])
    assert run_history(tmp_path).slowest in {"", *(side.with_suffix(".leadline").name for side in sides)}
    for side, milliseconds in zip(sides, (100, 300, 101, 102), strict=False):
        facts = json.loads(side.read_text())
        facts["steps_sum_ns"] = facts["steps"] * milliseconds * 10**6
        side.write_text(json.dumps(facts))
    history = run_history(tmp_path)
    assert history.slowest == sides[1].with_suffix(".leadline").name
    assert [one.slow for one in history.stretches if one.steps] == [False, True, False]
    (step,) = [change for change in history.longer if change.name == "step_mean_ns"]
    assert step.now == pytest.approx(300e6)
    assert step.before == pytest.approx(101e6)
    assert "| step mean | 101 ms | 300 ms | +197 % |" in render_history(history)
    assert main(["summary", str(tmp_path)]) == 0
    assert "### What took longer in" in capsys.readouterr().out


def test_a_steady_run_says_so(tmp_path: Path) -> None:
    for number in range(3):
        side = {"leadline_training": 1, "rank": 0, "steps": 10, "steps_sum_ns": 10**9, "started_at_ns": number}
        (tmp_path / f"h_rank0_{number}.json").write_text(json.dumps(side))
    (tmp_path / "h_rank0_x.json").write_text("rubbish")
    assert "No file is more than a tenth slower" in render_history(run_history(tmp_path))


@pytest.mark.parametrize("wrong", [-1, float("inf"), float("nan")])
def test_minutes_that_are_none(wrong: float) -> None:
    with pytest.raises(leadline.ProfileError, match="roll_minutes cannot be"):
        build_profiler(enable=True, roll_minutes=wrong)
