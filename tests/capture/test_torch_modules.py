"""Names of nn.Module objects: every way in which models are built, with the real torch and the native table."""

import copy
import gc
import io
import sys
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, and these tests build real modules")
from torch import nn  # noqa: E402

from leadline.capture.native import load_native  # noqa: E402
from leadline.capture.providers.torch.modules import ModuleTracker  # noqa: E402


class Names:
    """The native table, with a note of the modules it knows."""

    def __init__(self) -> None:
        self._native = load_native()
        self.known: set[int] = set()

    def module_register(self, parent: int, child: int, name: str) -> None:
        self.known.update({parent, child} - {0})
        self._native.module_register(parent, child, name)

    def module_forget(self, module: int) -> None:
        self.known.discard(module)
        self._native.module_forget(module)

    def module_forget_all(self) -> None:
        self.known.clear()
        self._native.module_forget_all()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def of(self, module: nn.Module) -> str:
        return self._native.module_name(id(module))


@pytest.fixture
def names() -> Iterator[Names]:
    gc.collect()  # modules of earlier tests
    table = Names()
    tracker = ModuleTracker(table, torch)
    tracker.install()
    table.known.clear()  # those that something else keeps
    yield table
    tracker.uninstall()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.Linear(2, 2)
        self.mlp = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


class Wide(Block):
    def __init__(self) -> None:
        super().__init__()
        self.more = nn.ModuleDict({"a": nn.Linear(2, 2)})
        self.build()

    def build(self) -> None:
        self.late = nn.Linear(2, 2)


class Net(nn.Module):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(depth)])
        self.head = Wide()


def assert_named_as_torch_names(names: Names, model: nn.Module, root: str) -> None:
    for path, module in model.named_modules():
        assert names.of(module) == (f"{root}.{path}" if path else root)


def test_a_model_in_a_variable(names: Names) -> None:
    model = Net()
    assert_named_as_torch_names(names, model, "model")


def test_a_subclass_with_helpers(names: Names) -> None:
    wide = Wide().to("cpu").eval()
    assert_named_as_torch_names(names, wide, "wide")


def test_a_leaf_as_the_model(names: Names) -> None:
    probe = nn.Linear(2, 2)
    assert names.of(probe) == "probe"


def test_a_model_from_a_factory(names: Names) -> None:
    def build() -> nn.Module:
        return Net().eval()

    network = build()
    assert_named_as_torch_names(names, network, "network")


def test_containers_built_in_place(names: Names) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), Block()))
    assert_named_as_torch_names(names, net, "net")


def test_modules_added_later(names: Names) -> None:
    """An empty container is not seen when it is made; the script's variable names it when it gets its first child."""
    space = {"nn": nn, "Block": Block, "Net": Net}
    program = "net = nn.Sequential()\nnet.add_module('a', Block())\nnet.append(nn.Linear(2, 2))\nnet.register_module('c', Net())"
    exec(compile(program, "script.py", "exec"), space)
    assert_named_as_torch_names(names, space["net"], "net")


def test_layers_copied_as_transformers_do(names: Names) -> None:
    """nn.TransformerEncoder clones its layer by deepcopy, which registers nothing."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 3)
    assert_named_as_torch_names(names, encoder, "encoder")


def test_a_copied_model(names: Names) -> None:
    model = Net()
    twin = copy.deepcopy(model)
    for path, module in twin.named_modules():
        assert names.of(module) == path, "the copy has no variable of its own in the table"


def test_an_unpickled_model(names: Names) -> None:
    buffer = io.BytesIO()
    torch.save(Net(), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for path, module in loaded.named_modules():
        assert names.of(module) == path


def test_an_attribute_of_something_that_is_no_module(names: Names) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.network = Net()

    trainer = Trainer()
    assert_named_as_torch_names(names, trainer.network, "network")


def test_a_model_given_to_a_function(names: Names) -> None:
    kept: list[nn.Module] = []

    def keep(module: nn.Module) -> list[nn.Module]:
        kept.append(module)
        return kept

    result = keep(Net())
    for path, module in result[0].named_modules():
        assert names.of(module) == path


def test_a_wrapped_model_is_named_by_its_wrapper(names: Names) -> None:
    class Wrapper(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

    model = Net()
    inner = model
    model = Wrapper(model)
    assert names.of(inner) == "model.module"
    assert names.of(inner.head.attn) == "model.module.head.attn"


def test_the_dead_are_forgotten(names: Names) -> None:
    model = Net()
    assert len(names.known) == len(list(model.modules()))
    del model
    gc.collect()
    assert names.known == set()


def test_no_module_is_kept_alive_by_the_search_for_names(names: Names) -> None:
    import weakref

    model = Net()
    dead = weakref.ref(model)
    del model
    assert dead() is None or (gc.collect() is not None and dead() is None)


def test_a_name_that_cannot_be_told_is_counted_and_the_model_is_built(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses: list[str] = []

    def refuse(*arguments: object) -> None:
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "surrogates not allowed")

    monkeypatch.setattr(names, "module_register", refuse)
    monkeypatch.setattr(names, "count_loss", lambda kind, count, detail: losses.append(kind), raising=False)
    model = Net()
    assert len(list(copy.deepcopy(model).modules())) == len(list(model.modules()))
    assert set(losses) == {"internal_error"}


def test_a_name_that_is_unregistered(names: Names) -> None:
    model = Block()
    model.register_module("attn", None)
    assert model.attn is None


def test_an_attribute_that_is_deleted_or_exchanged(names: Names) -> None:
    model = Block()
    old, model.attn = model.attn, nn.Linear(2, 2)
    assert names.of(model.attn) == "model.attn"
    assert names.of(old) == ""
    kept = model.mlp
    del model.mlp
    assert names.of(kept) == ""  # nobody holds it
    model.body = kept
    assert_named_as_torch_names(names, model, "model")


@pytest.mark.parametrize(
    "change",
    [
        lambda layers: layers.insert(1, nn.Linear(2, 2)),
        lambda layers: layers.pop(0),
        lambda layers: layers.__delitem__(slice(1, 3)),
        lambda layers: layers.__setitem__(0, nn.ReLU()),
        lambda layers: layers.extend([Block(), Block()]),
    ],
    ids=["insert", "pop", "delete", "set", "extend"],
)
@pytest.mark.parametrize(
    "container", [nn.ModuleList, lambda layers: nn.Sequential(*layers)], ids=["list", "sequential"]
)
def test_layers_that_move_up_or_down(names: Names, container: Any, change: Any) -> None:
    model = Net()
    model.layers = container([Block() for _ in range(4)])
    change(model.layers)
    assert_named_as_torch_names(names, model, "model")


def test_entries_taken_out_of_a_dict(names: Names) -> None:
    model = nn.ModuleDict({"a": Block(), "b": Block(), "c": Block()})
    taken = model.pop("a")
    del model["b"]
    assert_named_as_torch_names(names, model, "model")
    assert names.of(taken) == ""
    model.clear()
    model.update({"d": taken})
    assert_named_as_torch_names(names, model, "model")


def test_replicas_are_called_like_the_module_they_stand_for(names: Names) -> None:
    """What nn.DataParallel does per device: a shallow copy of each module, whose children are then exchanged."""
    model = Net()
    replicas = {id(module): module._replicate_for_data_parallel() for module in model.modules()}
    for module in model.modules():
        for name, child in module._modules.items():
            setattr(replicas[id(module)], name, replicas[id(child)])
    assert_named_as_torch_names(names, model, "model")
    assert_named_as_torch_names(names, replicas[id(model)], "model")


def test_modules_built_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Net()
    hidden = nn.Sequential(Block())
    monkeypatch.setattr(sys.modules["__main__"], "the_model", model, raising=False)
    table = Names()
    tracker = ModuleTracker(table, torch)
    tracker.install()
    try:
        assert_named_as_torch_names(table, model, "the_model")
        assert table.of(hidden[0].attn) == "0.attn"
    finally:
        tracker.uninstall()


def test_everything_is_put_back() -> None:
    registry = nn.modules.module
    before = [dict(vars(kind)) for kind in (nn.Module, nn.ModuleList, nn.ModuleDict, nn.Sequential)]
    table = Names()
    tracker = ModuleTracker(table, torch)
    tracker.install()
    assert nn.Module.__setstate__ is not before[0]["__setstate__"]
    tracker.uninstall()
    assert [dict(vars(kind)) for kind in (nn.Module, nn.ModuleList, nn.ModuleDict, nn.Sequential)] == before
    assert not registry._global_module_registration_hooks
    assert not registry._global_parameter_registration_hooks
    table.known.clear()
    model = Net()
    assert table.known == set()
    del model
