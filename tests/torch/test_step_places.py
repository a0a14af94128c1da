"""Where optimizers are asked from: a warm-up on a line of its own, epochs from several, twice in one step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import leadline
from leadline.steps.of_tree import counted

torch = pytest.importorskip("torch")


def _training() -> Callable[[], None]:
    weights = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        (weights * 2).sum().backward()
        optimizer.step()

    return step


def _taken(step: Callable[[], None], steps: int) -> None:
    for _ in range(steps):
        step()


def _steps(path: Path) -> tuple[int, int]:
    """Of the main process: how many, and how many of them were timed from border to border."""
    (one,) = counted(leadline.open(path))
    assert one.recorded is not None
    return one.steps, one.recorded.count


def test_a_warm_up_on_another_line_is_not_all_of_a_run(tmp_path: Path) -> None:
    step = _training()
    with leadline.profile(tmp_path / "p.leadline"):
        _taken(step, 2)
        for _ in range(6):
            _taken(step, 5)
    steps, timed = _steps(tmp_path / "p.leadline")
    assert 29 <= steps <= 32
    assert 28 <= timed <= 30


def test_each_epoch_may_be_called_from_a_line_of_its_own(tmp_path: Path) -> None:
    step = _training()
    with leadline.profile(tmp_path / "p.leadline"):
        _taken(step, 20)
        _taken(step, 20)
        _taken(step, 20)
    assert _steps(tmp_path / "p.leadline")[1] >= 50


def test_an_optimizer_that_is_asked_twice_in_a_step_ends_one(tmp_path: Path) -> None:
    """As sharpness-aware minimisation does, from two lines."""
    weights = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    with leadline.profile(tmp_path / "p.leadline"):
        for _ in range(20):
            (weights * 2).sum().backward()
            optimizer.step()
            (weights * 3).sum().backward()
            optimizer.step()
    assert _steps(tmp_path / "p.leadline")[1] == 19
