"""Operators that are called again with equal inputs: by value, wherever the tensors lie and whatever they are called."""

from __future__ import annotations

import pytest
from tests.eventtools.conftest import Runner

import leadline
from leadline.analysis.analyze import analyze
from leadline.tools.batch import batch_of
from leadline.tools.out import Out
from leadline.tools.registry import Launches, Names, Objects, Places
from leadline.tools.shipped.same_inputs import SameInputs
from leadline.tools.tool import Context

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

PROGRAM = """
import torch
torch.manual_seed(0)
weight = torch.randn(32, 32)
table = torch.arange(6.0)
for step in range(5):
    fixed = torch.mm(weight, weight.clone())
    new = torch.mm(weight, torch.randn(32, 32))
    noise = torch.bernoulli(torch.full((4,), 0.5))
    counted = torch.add(table, step)
    table.mul_(2)
"""


def test_equal_values_are_equal_inputs_and_others_are_not(run: Runner) -> None:
    rows = run(PROGRAM, "--tool", "same_inputs").table("same_inputs", "called again with equal inputs")
    found = {(row["operator"], row["line"].rpartition(":")[2]): (row["calls"], row["again"]) for row in rows}
    assert found[("aten::mm", "7")] == (5, 4), "other memory, the same values"
    assert found[("aten::clone", "7")] == (5, 4)
    assert not {line for operator, line in found if operator in ("aten::mm", "aten::add")} - {"7"}
    assert not {operator for operator, _ in found} & {"aten::bernoulli", "aten::randn", "aten::normal_", "aten::mul_"}


def test_a_call_that_stood_in_line_for_a_core_would_have_spared_no_more_than_the_others() -> None:
    context = Context(Names(), Objects(), Launches(), Places(lambda _: [], lambda _: False))
    tool = SameInputs(context)
    tool.start()
    operator = context.names.number("aten::mm")
    for durations, inputs in (([100, 10_000_000, 90], [7, 7, 7]), ([50, 95, 8_000_000], [8, 7, 8])):
        columns = {"kernel": [operator] * 3, "inputs": inputs, "place": [1] * 3, "duration": durations}
        tool.launch(batch_of("launch", columns))
    out = Out(context)
    tool.finish(out)
    tables = {output["name"]: output["rows"] for output in out.outputs if output["kind"] == "table"}
    assert tables["in all"] == [[6, 4, 18_000_335, 100 + 90 + 90 + 50]]
    assert tables["called again with equal inputs"][0][:4] == ["aten::mm", 6, 4, 330]


LAYERS = """
import torch
torch.set_num_threads(1)
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
    def forward(self, x, distances):
        bias = torch.tanh(torch.as_tensor(distances) @ torch.as_tensor(distances))
        return torch.relu(self.linear(x)) + bias[:64].mean()
layers = torch.nn.ModuleList(Layer() for _ in range(4))
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
distances = torch.rand(256, 256)
for step in range(8):
    x = torch.randn(64, 64)
    for layer in layers:
        x = layer(x, distances.clone())
    optimizer.zero_grad()
    x.square().mean().backward()
    optimizer.step()
"""


def test_the_analyzer_names_the_line_that_computes_the_same_again(run: Runner) -> None:
    ran = run(LAYERS, "--tool", "same_inputs")
    found = analyze(leadline.open(run.folder / "out.leadline"))
    assert ran.code == 0
    lines = {
        tuple(line.line for line in one.lines): one
        for one in found
        if one.rule == "redundant_work" and one.title.startswith("The same values are computed again")
    }
    assert lines.keys() - {(17,)} == {(9,)}, "at line 17 are the copies that it is computed from"
    assert ran.found("same_inputs")["outputs"][1]["text"].endswith("are left out.")
    named = lines[(9,)]
    assert named.severity.value == "warning"
    assert "aten::mm" in named.evidence[0]


def test_without_the_tool_nothing_is_said_by_value(run: Runner) -> None:
    run(LAYERS)
    assert not [one for one in analyze(leadline.open(run.folder / "out.leadline")) if "by value" in one.title]
