"""Loops of the program's own that call operators one by one: told from layers of a model, and from lambdas."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called

from leadline.analysis.analyze import analyze

SOURCE = """\
def update(pred, target):
    for c in range(20):
        tp[c] += (pred == c).sum().item()
        fn[c] += (target == c).sum()
    for p in parameters:
        p.register_hook(lambda g: g.clamp(-1, 1))
    for k in range(20):
        rows.append(torch.autograd.grad(y[:, k].sum(), x))
    for ids in micro:
        loss = model(ids) / 4
        loss.backward()
"""


def looped(tmp_path: Path, turns: int = 20, *, line: int = 3, name: str = "update", module: str = ""):
    """Ten steps; each iteration of the loop calls each of these operators once."""
    file = tmp_path / "metrics.py"
    file.write_text(SOURCE)
    lines = ["python main @ /home/ada/train.py:43", f"  python {name} @ {file}:{line}"]
    inside = "    "
    if module:
        lines, inside = [*lines, f"    module {module} [Layer]"], "      "
    operators = ("aten::eq", "aten::sum", "aten::item", "aten::add")
    lines += [inside + called(one, 10 * turns, 10) for one in operators]
    found = analyze(training(*lines), ["python_overhead"])
    return [one for one in found if "operators a step" in one.title]


def test_a_loop_over_classes_is_named_with_all_that_it_calls(tmp_path):
    (one,) = looped(tmp_path)
    assert [line.line for line in one.lines] == [3, 2]
    assert one.severity.value == "info"  # of so few turns
    assert one.title.startswith("The loop at line 2 calls 80 operators a step in 20 iterations, ")
    assert one.evidence[0].startswith("80 operators a step")
    assert one.measured_by == "leadline prove BEFORE.py AFTER.py"  # to compile the loop is another change


def test_an_operator_that_an_iteration_calls_twice_makes_no_more_iterations(tmp_path):
    file = tmp_path / "penalty.py"
    file.write_text("def penalise(scores):\n  for token in seen:\n    if scores[i, token] < 0:\n      pass\n")
    lines = ["python main @ /home/ada/train.py:43", f"  python penalise @ {file}:3"]
    lines += ["    " + called("aten::select", 1280, 10)]
    lines += ["    " + called(one, 640, 10) for one in ("aten::lt", "aten::is_nonzero")]
    (one,) = [one for one in analyze(training(*lines), ["python_overhead"]) if "operators a step" in one.title]
    assert one.title.startswith("The loop at line 2 calls 256 operators a step in 64 iterations, ")


def test_a_loop_that_calls_modules_only_says_no_iterations(tmp_path):
    (one,) = looped(tmp_path, 64, module="net.layers.*")
    assert one.title.startswith("The loop at line 2 calls 256 operators a step, ")


def test_many_turns_are_a_warning(tmp_path):
    (one,) = looped(tmp_path, 64)
    assert one.severity.value == "warning"


def test_a_loop_of_backward_passes_is_told_of_batched_gradients(tmp_path):
    (one,) = looped(tmp_path, line=8)
    assert "is_grads_batched" in one.remedy
    (one,) = looped(tmp_path, line=10)
    assert one.remedy.startswith("Take larger micro-batches")
    (one,) = looped(tmp_path)
    assert "is_grads_batched" not in one.remedy


@pytest.mark.parametrize(
    ("turns", "how"),
    [(4, {}), (20, {"module": "net.layers.*"}), (64, {"line": 6, "name": "update.<locals>.<lambda>"})],
    ids=["few turns", "layers", "lambda"],
)
def test_few_turns_layers_of_a_model_and_lambdas_are_no_loops_of_calls(tmp_path, turns, how):
    assert looped(tmp_path, turns, **how) == []


@pytest.mark.parametrize(("feed", "told"), [("x[:, t]", True), ("y", False)])
def test_a_loop_of_cells_is_one_layer_unless_its_output_comes_back(tmp_path: Path, feed: str, told: bool):
    file = tmp_path / "net.py"
    file.write_text(f"def encode(x):\n  for t in range(64):\n    h, c = cell({feed}, (h, c))\n    y = head(h)\n")
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python encode @ {file}:3",
        "    module net.cell [LSTMCell]",
        "      " + called("aten::lstm_cell", 640, 60),
    )
    found = [one for one in analyze(profile, ["python_overhead"]) if "Give the whole sequence" in one.remedy]
    assert bool(found) == told
    assert all(one.severity.value == "warning" and one.gain.expected_ns > 0 for one in found)
