"""Module names as a user reads them, for every common way of building, wrapping and calling a model.

A module is named by what holds it at the moment of its call: the innermost module being called around it that has it
somewhere below, under the names that they have now.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.torch.frames import names
from torch import nn

X = torch.ones(2, 4)
Build = Callable[[], Any]


class Net(nn.Module):
    """`body` of two layers and a `head`."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Adapter(nn.Module):
    """Takes the place of a layer and keeps it, as PEFT does."""

    def __init__(self, base_layer: nn.Module) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.ModuleDict({"default": nn.Linear(4, 4)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.lora_A["default"](x)


class Shares(nn.Module):
    def __init__(self, shared: nn.Module) -> None:
        super().__init__()
        self.mine = shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mine(x)


NET = {"model.body.0", "model.body.1", "model.head"}


def plain() -> None:
    model = Net()
    model(X)


def sequential_of_a_dead_list() -> None:
    def build() -> nn.Module:
        layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        return nn.Sequential(*layers)

    model = build()
    model(X)


def sequential_beside_its_list() -> None:
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
    model = nn.Sequential(*layers)
    model(X)


def module_dict() -> None:
    class Choice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ways = nn.ModuleDict({"left": nn.Linear(4, 4), "right": nn.Linear(4, 4)})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.ways["right"](self.ways["left"](x))

    model = Choice()
    model(X)


def lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(4))
    model(X)
    model(X)


def deep_copy() -> None:
    first = Net()
    model = copy.deepcopy(first)
    del first
    model(X)


def loaded() -> None:
    file = io.BytesIO()
    torch.save(Net(), file)
    file.seek(0)
    model = torch.load(file, weights_only=False)
    model(X)


def reassigned() -> None:
    model = Net()
    model(X)
    old = model.head
    model.head = nn.Linear(4, 4)
    model.body[1] = old
    model(X)


def deleted_and_moved() -> None:
    model = Net()
    kept = model.head
    del model.body
    del model.head
    model.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    del model.body[0]
    model.head = kept
    model(X)


def adapter() -> None:
    model = Net()
    model(X)
    for name, child in list(model.body.named_children()):
        setattr(model.body, name, Adapter(child))
    model(X)


def two_parents() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(Shares(shared), Shares(shared))
    model(X)


def data_parallel() -> None:
    model = nn.DataParallel(Net())
    model(X)


def functional_call() -> None:
    model = Net()
    torch.func.functional_call(model, {name: value * 2 for name, value in model.named_parameters()}, (X,))


def gradient_by_function() -> None:
    model = Net()
    parameters = dict(model.named_parameters())
    torch.func.grad(lambda values: torch.func.functional_call(model, values, (X,)).sum())(parameters)


def vectorised() -> None:
    model = Net()
    torch.func.vmap(model)(X)


def traced() -> None:
    model = Net()
    compiled = torch.jit.trace(model, X, check_trace=False)
    compiled(X)


def scripted() -> None:
    model = torch.jit.script(Net())
    model(X)


def bound_method() -> None:
    model = Net()
    run = model.__call__
    run(X)


def attribute_of_a_trainer() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = Net()

        def step(self) -> None:
            self.model(X)

    Trainer().step()


def checkpointed() -> None:
    model = Net()
    torch.utils.checkpoint.checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward()


TABLE: list[tuple[Build, set[str]]] = [
    (plain, NET),
    (sequential_of_a_dead_list, {"model.0", "model.1"}),
    (sequential_beside_its_list, {"model.0", "model.1"}),
    (module_dict, {"model.ways.left", "model.ways.right"}),
    (lazy, {"model.0", "model.1"}),
    (deep_copy, NET),
    (loaded, NET),
    (reassigned, NET),
    (deleted_and_moved, NET),
    (
        adapter,
        NET | {f"model.body.{i}.{part}" for i in (0, 1) for part in ("base_layer", "lora_A.default")},
    ),
    (two_parents, {"model.0.mine", "model.1.mine"}),
    (data_parallel, {"model.module.body.0", "model.module.body.1", "model.module.head"}),
    (functional_call, NET),
    (gradient_by_function, NET),
    (vectorised, NET),
    (traced, NET | {"compiled"}),
    (scripted, {"model"}),
    (bound_method, NET),
    (attribute_of_a_trainer, NET),
    (checkpointed, NET),
]


@pytest.mark.parametrize(("run", "expected"), TABLE, ids=[run.__name__ for run, _ in TABLE])
def test_layers_are_named_by_who_holds_them(measure, run, expected):
    result = measure(run)
    linear = list(result.tree.find(kind="operator", name="aten::linear"))
    assert linear
    assert {names(node, "module")[-1] for node in linear} == expected


def test_a_compiled_model_is_named_as_its_user_does(measure):
    def run() -> None:
        compiled = torch.compile(Net(), backend="eager")
        compiled(X)

    found = {node.name for node in measure(run).tree.find(kind="module")}
    assert "compiled" in found and not {name for name in found if name.startswith("new_mod")}


def of_a_package(text: str, **names: Any) -> dict[str, Any]:
    """What the text of a package's file defines."""
    exec(compile(text, "/usr/lib/python3/site-packages/package/models.py", "exec"), names)
    return names


def test_a_model_that_a_package_makes_is_named_as_its_user_does(measure):
    made = of_a_package(
        """
def from_pretrained(config=None):
    model = Net()
    model.eval()
    return model

def fit():
    inner = Net()
    inner(X)
    return 1

def build_all():
    model = Net()
    return {"bert": model}
""",
        Net=Net,
        X=X,
    )

    def run() -> None:
        bert = made["from_pretrained"]()
        bert(X)
        result = made["fit"]()
        models = made["build_all"]()
        models["bert"](X)
        assert result

    found = {node.name for node in measure(run).tree.find(kind="module")}
    assert {"bert.head", "inner.head", "model.head"} <= found
    assert not {name for name in found if name.startswith(("result", "models"))}


def test_a_package_that_wraps_the_compiler_names_nothing(measure, monkeypatch):
    """As Lightning's does, for every program that imports it."""
    made = of_a_package(
        """
def wrapped(model, **named):
    compiled_model = compile_fn(model, **named)
    compiled_model._compile_kwargs = dict(named)
    return compiled_model
""",
        compile_fn=torch.compile,
    )
    monkeypatch.setattr(torch, "compile", made["wrapped"])

    def run() -> None:
        compiled = torch.compile(Net(), backend="eager")
        compiled(X)

    found = {node.name for node in measure(run).tree.find(kind="module")}
    assert "compiled" in found and "compiled_model" not in found
