"""The name a statement gives to what it makes, from its bytecode, while the maker runs."""

import sys
import textwrap

import pytest

from leadline.capture.providers.assigned_name import NOWHERE, Destination, assigned_name, is_returned


class Model:
    """Remembers where it was made, and returns itself as nn.Module's methods do."""

    made: list[Destination]

    def __init__(self, *arguments: object, **named: object) -> None:
        caller = sys._getframe(1)
        self.made.append(assigned_name(caller.f_code, caller.f_lasti))

    def to(self, *arguments: object) -> "Model":
        return self

    eval = to

    def summary(self) -> str:
        return "summary"


def run(program: str) -> list[Destination]:
    Model.made = []
    space = {"Model": Model, "f": lambda *arguments, **named: arguments, "device": "cpu", "box": Model}
    exec(compile(textwrap.dedent(program), "program.py", "exec"), space)
    return Model.made


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("model = Model()", "model"),
        ("model = Model(1, x=2)", "model"),
        ("model = Model(*[1], **{})", "model"),
        ("model = Model().to(device)", "model"),
        ("model = Model().to(f(device)[0]).eval()", "model"),
        ("a = b = Model()", "a"),
        ("model: object = Model()", "model"),
        ("if (model := Model()): pass", "model"),
        ("box.model = Model()", "model"),
        ("def main():\n    net = Model().eval()\nmain()", "net"),
        ("def main():\n    global net\n    net = Model()\nmain()", "net"),
        ("def main():\n    net = Model()\n    return lambda: net\nmain()", "net"),
        ("class Trainer:\n    def __init__(self):\n        self.net = Model()\nTrainer()", "net"),
    ],
)
def test_named(program: str, name: str) -> None:
    assert run(program) == [Destination(name, False)]


@pytest.mark.parametrize(
    "program",
    [
        "Model()",
        "result = f(Model(), 1)",
        "result = f(Model())",
        "result = f(1, Model())",
        "models = [Model()]",
        "text = Model().summary()",
        "d = {}\nd['k'] = Model()",
        "f(device, model=Model())",
    ],
)
def test_nobodys_name(program: str) -> None:
    assert run(program) == [NOWHERE]


def test_the_caller_of_a_python_function() -> None:
    """Such a call is not a C call, and leaves another mark in the frame."""
    seen: list[Destination] = []

    def build() -> int:
        caller = sys._getframe(1)
        seen.append(assigned_name(caller.f_code, caller.f_lasti))
        return 3

    network = build()
    assert (seen, network) == ([Destination("network", False)], 3)


def test_returned_to_the_caller() -> None:
    assert run("def build():\n    return Model().to(device)\nmodel = build()") == [Destination("", True)]
    assert run("model = (lambda: Model())()") == [Destination("", True)]


def test_a_variable_that_the_function_returns() -> None:
    def build(size: int) -> Model:
        model, other = Model(size), Model()
        other.summary()
        return model

    def kept() -> object:
        model = Model()
        return lambda: model

    assert is_returned(build.__code__, "model") and not is_returned(build.__code__, "other")
    assert not is_returned(kept.__code__, "model")
