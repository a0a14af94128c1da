"""What a user sees of small TensorFlow programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tensorflow.conftest import PROGRAMS, Ran
from tests.truth.invariants import contradictions

from leadline.profiles.tree import Node

pytest.importorskip("tensorflow", reason="these tests measure real TensorFlow; make test-tf runs them")

pytestmark = pytest.mark.timeout(240)


def _line(program: str, text: str) -> int:
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line and "def " not in line)


def _made_on(node: Node) -> Node:
    """The Python line that a node of a graph stands on."""
    found = node.nearest("python")
    assert found is not None
    return found


def _share_on_lines(ran: Ran) -> float:
    """Of the time of nodes, what stands on a line inside of the function that they are part of."""
    placed = whole = 0
    for node in ran.inside():
        spent = int(node.exclusive("time").sum)
        path = node.path()
        called = next(place for place, one in enumerate(path) if one.name.startswith("tf.function("))
        whole += spent
        placed += spent if any(one.kind == "python" for one in path[called:]) else 0
    assert whole > 0
    return placed / whole


def test_a_function_is_counted_exactly_and_its_nodes_stand_on_the_lines_that_made_them(run: Callable[..., Ran]) -> None:
    ran = run("function_loop.py", "600")
    assert contradictions(ran.profile) == []
    steps = int(ran.output)
    assert ran.calls("tf.function(train_step)") == steps
    [step] = ran.nodes("tf.function(train_step)")
    assert _made_on(step).line == _line("function_loop.py", "train_step(batch, label)")
    eager = [node for node in ran.nodes("MatMul") if "node" not in node.detail]
    assert sum(int(node.exclusive("call_time").count) for node in eager) == steps
    assert {_made_on(node).line for node in eager} == {_line("function_loop.py", "transpose_b=True")}
    assert _share_on_lines(ran) >= 0.99
    products = [node for node in ran.inside() if "MatMul" in node.name]
    backward = [node for node in products if "backward" in [one.name for one in node.path()]]
    lines = {_made_on(node).line for node in products}
    assert lines == {_line("function_loop.py", text) for text in ("batch @ first", "hidden @ second")}
    assert {_made_on(node).line for node in backward} == lines  # of the forward node
    told = ran.profile.meta["available"]["tensorflow"]
    assert told["calls"] >= steps and 0 < told["timed_calls"] < told["calls"]
    assert any(node.name.startswith("Iterator::") for node in ran.profile.tree.find(kind="operator"))


def test_layers_of_keras_are_modules_and_its_batches_are_steps(run: Callable[..., Ran]) -> None:
    ran = run("keras_fit.py", "60")
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(multi_step_on_iterator)") == int(ran.output)
    assert _share_on_lines(ran) >= 0.99
    modules = {node.name for node in ran.profile.tree.find(kind="module")}
    assert any(name.endswith(".conv_1") for name in modules), modules
    assert any(name.endswith(".out_1") for name in modules), modules
    scaled = [node for node in ran.inside() if node.name == "Tanh"]
    assert {_made_on(node).line for node in scaled} == {_line("keras_fit.py", "keras.ops.tanh(inputs)")}
    phases = {one.name for node in ran.inside() for one in node.path() if one.kind == "phase"}
    assert {"backward", "optimizer"} <= phases


def test_traces_that_the_program_takes_itself_are_whole_and_calls_are_counted(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = run("own_profiler.py", str(tmp_path / "traces"), "4")
    calls, traces = map(int, ran.output.split())
    assert traces > 2
    assert ran.calls("tf.function(own_step)") == calls
    assert sum(int(node.exclusive("time").sum) for node in ran.inside()) > 0  # ours found their time between theirs
