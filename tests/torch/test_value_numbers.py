"""Which operators compute what was computed before, against programs of which that is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn


def again(result, name: str) -> int:
    return sum(int(node.exclusive("again").sum) for node in result.tree.find(kind="operator", name=name))


def test_the_same_operator_on_the_same_tensor_is_computed_again(measure):
    x = torch.randn(64, 64)

    def run() -> None:
        for _ in range(5):
            torch.sin(x)

    assert again(measure(run, shapes=True), "aten::sin") == 0  # what was there before has no number

    def made() -> None:
        y = torch.randn(64, 64)
        for _ in range(5):
            torch.sin(y)

    assert again(measure(made, shapes=True), "aten::sin") == 4


def test_results_of_equal_work_are_equal(measure):
    """A table made anew each time, and what is computed from it."""

    def run() -> None:
        for _ in range(6):
            position = torch.arange(512, dtype=torch.float32)
            angle = position.unsqueeze(1) * 0.1
            torch.cos(angle)

    result = measure(run, shapes=True)
    assert again(result, "aten::cos") == 5
    assert again(result, "aten::arange") == 5


@pytest.mark.parametrize("change", ["in place", "through numpy", "another", "random", "other view", "weights"])
def test_what_differs_is_not_again(measure, change):
    layer = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def run() -> None:
        y = torch.zeros(64, 64)
        table = torch.randn(10, 64, 64)
        for turn in range(5):
            if change == "in place":
                y.add_(1)
            elif change == "through numpy":
                y.numpy()[:] = np.random.rand(64, 64)
            elif change == "another":
                y = torch.full((64, 64), float(turn))
            elif change == "random":
                y = torch.rand(64, 64)
            elif change == "other view":
                y = table[turn]
            elif change == "weights":
                optimizer.zero_grad()
                layer(y).sum().backward()
                optimizer.step()
            torch.cos(y if change != "weights" else layer.weight)

    assert again(measure(run, shapes=True), "aten::cos") == 0


def test_an_encoder_that_is_called_for_each_token_is_again_as_a_whole(measure):
    def run() -> None:
        encoder = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32))
        source = torch.randn(8, 32)
        with torch.no_grad():
            for _ in range(7):
                encoder(source)

    result = measure(run, shapes=True)
    assert again(result, "aten::linear") == 12
    assert again(result, "aten::gelu") == 6
    assert again(result, "aten::layer_norm") == 6


def test_what_is_written_in_place_follows_from_what_was_there(measure):
    def run() -> None:
        for _ in range(6):
            table = torch.zeros(64, 64)
            table[:, 0::2] = torch.arange(32.0)
            torch.sin(table)

    assert again(measure(run, shapes=True), "aten::sin") == 5

    def other() -> None:
        for turn in range(6):
            table = torch.zeros(64, 64)
            table[:, turn::6] = 1.0
            torch.sin(table)

    assert again(measure(other, shapes=True), "aten::sin") == 0


def test_dropout_and_what_follows_differs(measure):
    def run() -> None:
        y = torch.randn(64, 64)
        for _ in range(5):
            torch.sin(nn.functional.dropout(y, 0.5))

    result = measure(run, shapes=True)
    assert again(result, "aten::sin") == 0
    assert again(result, "aten::dropout") == 0


def test_memory_that_comes_again_is_another_tensor(measure):
    def run() -> None:
        for _ in range(50):
            torch.sin(torch.randn(64, 64))

    assert again(measure(run, shapes=True), "aten::sin") == 0


def test_of_later_steps_some_are_numbered_and_stand_for_the_others(measure):
    def run() -> None:
        layer = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(48):
            table = torch.arange(512.0)
            layer(torch.sin(table)[:8]).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    result = measure(run, shapes=True)
    assert again(result, "aten::sin") == 47
    assert again(result, "aten::linear") == 0
