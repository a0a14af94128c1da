"""What a program says of itself beside its operators: gradients without a use, turns of loops over batches."""

from __future__ import annotations

import pytest

import leadline

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from leadline.capture.providers.loaders import passes  # noqa: E402
from leadline.capture.providers.loaders.passes import tensors_in  # noqa: E402
from leadline.capture.providers.torch.habits import unused_gradients  # noqa: E402


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


def test_gradients_that_an_earlier_part_of_the_program_left_are_not_computed_here(tmp_path):
    left = Model()
    left(torch.randn(3, 4)).sum().backward()
    with leadline.profile(tmp_path / "p.leadline"):
        model = Model()
        trained(model, model.head.parameters())
    assert [(one["module"], one["parameters"]) for one in habits(tmp_path / "p.leadline")["modules"]] == [
        ("backbone", 40)
    ]
    assert all(one.grad is not None for one in left.parameters())


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
    assert unused_gradients(list(model.modules()), {1, 2, 3}, {}) == {}


def test_batches_tell_the_length_of_a_turn(tmp_path):
    from torch.utils.data import DataLoader, TensorDataset

    with leadline.profile(tmp_path / "p.leadline"):
        for _ in range(2):
            for (x,) in DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=2):
                x.sum()
    tree = leadline.open(tmp_path / "p.leadline").tree
    turns = [tree.node(row) for row in range(len(tree)) if tree.node(row).name == "turn"]
    assert [turn.exclusive("call_time").count for turn in turns] == [10]  # two passes of six batches


def adversarial(detach, steps=14):
    """What a generator makes, judged by a discriminator; each has its optimizer."""
    generator, judge = nn.Linear(4, 4), nn.Linear(4, 1)
    of_generator, of_judge = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (generator, judge))
    for _ in range(steps):
        fake = generator(torch.randn(3, 4))
        of_judge.zero_grad()
        judge(fake.detach() if detach else fake).sum().backward()
        of_judge.step()
        of_generator.zero_grad()
        judge(generator(torch.randn(3, 4))).sum().backward()
        of_generator.step()


@pytest.mark.parametrize("detach", [False, True])
def test_gradients_that_are_cleared_before_their_own_optimizer_steps_are_told(tmp_path, detach):
    with leadline.profile(tmp_path / "p.leadline"):
        adversarial(detach)
    told = leadline.open(tmp_path / "p.leadline").meta["available"]["torch"]["habits"].get("discarded_gradients", {})
    names = {one["class"] for one in told.get("modules", [])}
    assert told.get("parameters", 0) == (5 if detach else 25)  # the judge's own come from the generator's step, too
    assert names == {"Linear"}


def test_micro_batches_throw_nothing_away(tmp_path):
    with leadline.profile(tmp_path / "p.leadline"):
        body, head = nn.Linear(4, 4), nn.Linear(4, 1)
        optimizers = [torch.optim.Adam(one.parameters()) for one in (body, head)]
        for _ in range(14):
            for one in optimizers:
                one.zero_grad()
            for _ in range(2):
                head(body(torch.randn(3, 4))).sum().backward()
            for one in optimizers:
                one.step()
    told = leadline.open(tmp_path / "p.leadline").meta["available"]["torch"]["habits"]
    assert "discarded_gradients" not in told
    assert told["updated"] == {"parameters": 25, "bytes": 100, "double": 0}


def test_who_makes_a_loaders_batches_is_told_with_the_time_of_joining_them(tmp_path):
    from torch.utils.data import DataLoader

    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return str(index)

    def join(texts):
        return torch.tensor([int(text) for text in texts])

    with leadline.profile(tmp_path / "p.leadline"):
        loader = DataLoader(Texts(), batch_size=2, collate_fn=join)
        begun = iter(loader)
        next(begun)
        for _ in range(2):
            batches = [batch.tolist() for batch in loader]
    assert batches == [[0, 1], [2, 3], [4, 5]]
    assert next(begun).tolist() == [2, 3]  # an iterator that outlives the session
    (told,) = leadline.open(tmp_path / "p.leadline").meta["available"]["torch"]["habits"]["batches"]
    assert (told["batches"], told["passes"], told["join"]["file"]) == (7, 3, __file__)
    assert told["join"]["name"].endswith("join") and told["items"]["name"].endswith("Texts.__getitem__")
    assert told["join_ns"] > 0


def test_what_starting_workers_takes_is_told_for_each_pass_that_starts_them(tmp_path):
    from torch.utils.data import DataLoader, TensorDataset

    with leadline.profile(tmp_path / "p.leadline"):
        anew = DataLoader(TensorDataset(torch.arange(6)), batch_size=2, num_workers=1)
        kept = DataLoader(TensorDataset(torch.arange(4)), batch_size=2, num_workers=1, persistent_workers=True)
        seen = [[batch.tolist() for (batch,) in loader] for loader in (anew, kept) for _ in range(2)]
    assert seen == [[[0, 1], [2, 3], [4, 5]]] * 2 + [[[0, 1], [2, 3]]] * 2
    told = leadline.open(tmp_path / "p.leadline").meta["available"]["torch"]["habits"]["passes"]
    assert [one["starts"] for one in told] == [2, 1]
    assert [one["tensors"] for one in told] == [1, 1]
    assert all(one["start_ns"] > 0 and one["first_ns"] > 0 for one in told)


@pytest.mark.parametrize(
    ("batch", "number"),
    [
        (torch.ones(3), 1),
        ([torch.ones(3), [{"boxes": torch.ones(1), "name": "a"}] * 5, (torch.ones(1), 7)], 7),
        ("text", 0),
        ({}, 0),
    ],
)
def test_tensors_of_a_batch_are_counted_wherever_they_stand(batch, number):
    assert tensors_in(batch) == number


def test_counting_them_ends(monkeypatch):
    deep = []
    deep.append(deep)
    monkeypatch.setattr(passes, "MOST_OBJECTS", 50)
    assert tensors_in([torch.ones(1)] * 1000) == 49
    assert tensors_in([[deep] * 10] * 10) == 0
