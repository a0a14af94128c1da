"""What a program says of itself beside its operators: gradients without a use, turns of loops over batches."""

from __future__ import annotations

import pytest

import leadline

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from leadline.capture.providers.torch_habits import unused_gradients  # noqa: E402


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def trained(model, parameters, steps=12):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(steps):
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()


def habits(path):
    torch_says = leadline.open(path).meta["available"]["torch"]
    return torch_says.get("habits", {}).get("unused_gradients")


def test_gradients_that_no_optimizer_uses_are_told_by_their_outermost_module(tmp_path):
    with leadline.profile(tmp_path / "p.leadline"):
        model = Model()
        trained(model, model.head.parameters())
    found = habits(tmp_path / "p.leadline")
    assert [(one["module"], one["class"]) for one in found["modules"]] == [("backbone", "Sequential")]
    assert found["parameters"] == 40
    assert found["of_parameters"] == 50


@pytest.mark.parametrize("freeze", [True, False])
def test_frozen_parameters_and_trained_ones_are_no_such_thing(tmp_path, freeze):
    with leadline.profile(tmp_path / "p.leadline"):
        model = Model()
        model.backbone.requires_grad_(not freeze)
        trained(model, model.parameters() if not freeze else model.head.parameters())
    assert habits(tmp_path / "p.leadline") == {}


def test_an_optimizer_with_copies_of_its_own_says_nothing():
    """Master weights in another precision: none of the model's parameters are the optimizer's."""
    model = Model()
    model(torch.randn(3, 4)).sum().backward()
    assert unused_gradients(list(model.modules()), {1, 2, 3}) == {}


def test_batches_tell_the_length_of_a_turn(tmp_path):
    from torch.utils.data import DataLoader, TensorDataset

    with leadline.profile(tmp_path / "p.leadline"):
        for _ in range(2):
            for (x,) in DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=2):
                x.sum()
    tree = leadline.open(tmp_path / "p.leadline").tree
    turns = [tree.node(row) for row in range(len(tree)) if tree.node(row).name == "turn"]
    assert [turn.exclusive("call_time").count for turn in turns] == [10]  # two passes of six batches
