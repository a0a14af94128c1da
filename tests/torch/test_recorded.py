"""What autograd records, operator by operator, against torch's own word: whether the result needs a gradient."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

OPERATORS = {"sin": "aten::sin", "cos": "aten::cos", "exp": "aten::exp", "tanh": "aten::tanh"}


def recorded(result, name: str) -> int:
    return sum(int(node.exclusive("recorded").sum) for node in result.tree.find(kind="operator", name=name))


def calls(result, name: str) -> int:
    return sum(int(node.exclusive("call_time").count) for node in result.tree.find(kind="operator", name=name))


@pytest.mark.parametrize("seed", range(3))
def test_recorded_calls_are_those_whose_results_need_a_gradient(measure, seed):
    chance = random.Random(seed)
    modes = (torch.no_grad, torch.enable_grad, torch.inference_mode)
    expected = dict.fromkeys(OPERATORS, 0)

    def run() -> None:
        for _ in range(200):
            name = chance.choice(list(OPERATORS))
            x = torch.ones(3, requires_grad=chance.random() < 0.5)
            with chance.choice(modes)():
                expected[name] += getattr(torch, name)(x).requires_grad
        torch.neg(torch.ones(3, requires_grad=True))  # what comes next tells of the last

    result = measure(run)
    assert {name: recorded(result, of) for name, of in OPERATORS.items()} == expected
    assert sum(expected.values()) > 10


def test_composites_leave_it_to_what_they_call(measure):
    layer = nn.Linear(4, 4)

    def run() -> None:
        for _ in range(5):
            layer(torch.ones(2, 4)).sum().backward()
        torch.neg(torch.ones(3, requires_grad=True))

    result = measure(run)
    assert recorded(result, "aten::addmm") == 5
    assert recorded(result, "aten::linear") == 0
    assert calls(result, "AddmmBackward0") == 5


def test_functions_of_the_users_own_count_too(measure):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            return 2 * x * gradient

    def run() -> None:
        for _ in range(4):
            Square.apply(torch.ones(3, requires_grad=True)).sum().backward()

    result = measure(run)
    assert recorded(result, "Square") == 4
    assert recorded(result, "aten::mul") == 0


def test_what_checkpointing_computes_again_is_recorded_where_it_runs(measure):
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def run() -> None:
        for _ in range(3):
            checkpoint(layer, torch.ones(2, 4, requires_grad=True), use_reentrant=True).sum().backward()
        torch.neg(torch.ones(3, requires_grad=True))

    result = measure(run)
    assert recorded(result, "aten::tanh") == 3  # not in the pass that goes first, which is below no_grad
    node = next(node for node in result.tree.find(kind="operator", name="aten::tanh") if node.exclusive("recorded").sum)
    assert "backward" in [step.name for step in node.path()]


def test_the_profile_says_that_it_tells(measure):
    result = measure(lambda: torch.neg(torch.ones(3)))
    assert result.meta["available"]["torch"]["autograd"] is True
