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

    assert again(measure(run, shapes=True), "aten::sin") == 4  # what was there before is known by its content

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


def test_what_numpy_made_and_keeps_is_known_again(measure):
    graph = np.random.rand(64, 64).astype(np.float32)

    def run() -> None:
        adjacency = torch.from_numpy(graph)
        for _ in range(5):
            torch.sin(torch.diag(adjacency.sum(1)) @ adjacency)
            torch.cos(torch.from_numpy(graph)[8:16])

    result = measure(run, shapes=True)
    for name in ("aten::sum", "aten::diag", "aten::matmul", "aten::sin", "aten::cos"):
        assert again(result, name) == 4, name


def masks(turn: int) -> np.ndarray:
    """Rows of as many ones as there are tokens."""
    lengths = np.random.default_rng(turn).integers(20, 128, 32)
    return (np.arange(128)[None] < lengths[:, None]).astype(np.int64)


def one_hot(turn: int) -> np.ndarray:
    made = np.zeros((64, 100), np.float32)
    made[np.arange(64), np.random.default_rng(turn).integers(0, 100, 64)] = 1
    return made


@pytest.mark.parametrize("batch", [masks, one_hot, lambda turn: np.random.default_rng(turn).random((64, 8))])
@pytest.mark.parametrize("place", ["anew", "in place", "of a set"])
def test_batches_that_numpy_makes_at_one_place_differ(measure, batch, place):
    def run() -> None:
        kept = batch(0)
        shared = torch.from_numpy(kept)
        every = np.stack([batch(turn) for turn in range(6)])
        for turn in range(6):
            if place == "anew":
                shared = torch.from_numpy(batch(turn))
            elif place == "in place":
                kept[:] = batch(turn)
            else:
                shared = torch.from_numpy(every)[turn]
            torch.neg(shared)

    assert again(measure(run, shapes=True), "aten::neg") == 0


CHANGES = ("in place", "one element", "out", "list", "through numpy", "another", "random", "other view")


@pytest.mark.parametrize(
    ("change", "mode"),
    [("weights", torch.enable_grad)] + [(one, how) for one in CHANGES for how in (torch.no_grad, torch.inference_mode)],
)
def test_what_differs_is_not_again(measure, change, mode):
    layer = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def run() -> None:
        y = torch.zeros(64, 64)
        table = torch.randn(10, 64, 64)
        for turn in range(5):
            if change == "in place":
                y.add_(1)
            elif change == "one element":
                y[3, 5] = turn
            elif change == "out":
                torch.add(y, 1, out=y)
            elif change == "list":
                torch._foreach_add_([y], 1)
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

    def in_mode() -> None:
        with mode():
            run()

    assert again(measure(in_mode, shapes=True), "aten::cos") == 0


def test_results_of_inference_mode_are_numbered_and_sessions_forget_those_before(measure):
    def run() -> None:
        with torch.inference_mode():
            table = torch.ones(64, 64)
            for turn in range(5):
                torch.cos(table.sin() + 1)
                torch.exp(torch.full((2,), float(turn)))

    for _ in range(2):
        result = measure(run, shapes=True)
        assert (again(result, "aten::cos"), again(result, "aten::exp")) == (4, 0)


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


def test_lists_of_tensors_are_numbered_by_what_they_hold(measure):
    def run() -> None:
        parts = [torch.randn(16, 8) for _ in range(3)]
        mask = torch.arange(16) % 3 == 0
        for _ in range(5):
            torch.sin(torch.cat(parts))
            torch.cos(torch.stack(parts)[0])
            torch.tan(parts[0][mask])

    result = measure(run, shapes=True)
    for name in ("aten::cat", "aten::sin", "aten::stack", "aten::cos", "aten::index", "aten::tan"):
        assert again(result, name) == 4, name


@pytest.mark.parametrize("change", ["another", "order", "in place", "length"])
def test_lists_that_differ_are_not_again(measure, change):
    def run() -> None:
        parts = [torch.randn(16, 8) for _ in range(6)]
        for turn in range(5):
            if change == "another":
                parts[1] = torch.randn(16, 8)
            elif change == "order":
                parts = [*parts[1:], parts[0]]
            elif change == "in place":
                parts[2].add_(1)
            torch.cat(parts if change != "length" else parts[turn:])

    assert again(measure(run, shapes=True), "aten::cat") == 0


def test_a_recurrent_layer_that_drops_numbers_by_chance_differs(measure):
    def run(dropout: float) -> None:
        layer = nn.LSTM(8, 8, num_layers=2, dropout=dropout)
        x = torch.randn(5, 3, 8)
        for _ in range(4):
            layer(x)

    assert again(measure(lambda: run(0.0), shapes=True), "aten::lstm") == 3
    assert again(measure(lambda: run(0.5), shapes=True), "aten::lstm") == 0


def details(result, name: str) -> set[tuple[str, str, str]]:
    found = [node.detail for node in result.tree.find(kind="operator", name=name)]
    return {tuple(str(one.get(key)) for key in ("shapes", "types", "zeros")) for one in found}


def test_texts_of_inputs_that_come_again_say_what_the_first_ones_said(measure):
    """One operator on sizes and types in turns: none is taken for another one."""

    def run() -> None:
        for _ in range(3):
            for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
                torch.neg(torch.ones(4, 5).to(dtype).long() if dtype is torch.bool else torch.ones(4, 5, dtype=dtype))
            torch.neg(torch.ones(5, 4))
            torch.neg(torch.ones(20))
            torch.neg(torch.tensor(1.0))

    shapes = {(shape, kind) for shape, kind, _ in details(measure(run, shapes=True), "aten::neg")}
    assert shapes == {
        ("[[4, 5]]", "['float']"), ("[[4, 5]]", "['double']"), ("[[4, 5]]", "['long int']"),
        ("[[5, 4]]", "['float']"), ("[[20]]", "['float']"), ("[[]]", "['float']"),
    }  # fmt: skip


@pytest.mark.parametrize(("used", "zeros"), [(2, "[0]"), (6, "None")])
def test_weights_that_are_mostly_zeros_are_told(measure, used, zeros):
    def run() -> None:
        weights = torch.zeros(256, 8)
        weights[:, :used] = 0.5
        outputs = torch.randn(256, 8, 16)
        for _ in range(3):
            torch.mul(weights.unsqueeze(-1), outputs)
            torch.where(weights.unsqueeze(-1) > 0, outputs, -outputs)
            torch.mul(outputs, outputs)

    result = measure(run, shapes=True)
    assert {one[2] for one in details(result, "aten::where")} == {zeros}
    assert {one[2] for one in details(result, "aten::mul")} == {zeros, "None"}


def test_what_lives_long_is_known_however_much_comes_and_goes(measure):
    def run() -> None:
        held = [torch.randn(32) for _ in range(128)]
        for x in held:
            torch.sin(x)
        others = [torch.empty(16) for _ in range(8000)]
        del others
        for x in held:
            torch.sin(x)

    # Two of 128 operators share one of 65,536 places in one run of eight, and then neither is known again.
    assert again(measure(run, shapes=True), "aten::sin") >= 120
