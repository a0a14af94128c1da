"""Names of nn.Module objects: every way in which models are built, with the real torch and a native side that notes."""

import copy
import gc
import io
import sys
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, and these tests build real modules")
from torch import nn  # noqa: E402

from leadline.capture.providers.torch_modules import ModuleTracker  # noqa: E402


class Names:
    """The table of native/stack/module_names.cpp: the first parent stays, and a parent's name replaces a root's."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[int, str]] = {}

    def module_register(self, parent: int, child: int, name: str) -> None:
        if not self.entries.get(child, (0, ""))[0]:
            self.entries[child] = (parent, name)

    def module_forget(self, module: int) -> None:
        self.entries.pop(module, None)

    def of(self, module: nn.Module) -> str:
        key, parts = id(module), []
        while key in self.entries:
            key, name = self.entries[key]
            parts.append(name)
        return ".".join(reversed(parts))


@pytest.fixture
def names() -> Iterator[Names]:
    gc.collect()  # modules of earlier tests
    table = Names()
    tracker = ModuleTracker(table, torch)
    tracker.install()
    table.entries.clear()  # those that something else keeps
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
    assert len(names.entries) == len(list(model.modules()))
    del model
    gc.collect()
    assert names.entries == {}


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
    before = (nn.Module.__setstate__, nn.Module.__call__, nn.Module.__init__)
    table = Names()
    tracker = ModuleTracker(table, torch)
    tracker.install()
    assert nn.Module.__setstate__ is not before[0]
    tracker.uninstall()
    assert (nn.Module.__setstate__, nn.Module.__call__, nn.Module.__init__) == before
    assert not registry._global_module_registration_hooks
    assert not registry._global_parameter_registration_hooks
    table.entries.clear()
    model = Net()
    del model
    assert table.entries == {}
