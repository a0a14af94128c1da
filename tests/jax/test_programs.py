"""What a user sees of a small training loop."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.jax.conftest import PROGRAMS, Ran

from leadline.report.build import build_report
from leadline.report.json_report import render_json
from leadline.report.markdown import render_markdown
from leadline.report.text import render_text

SOURCE = (PROGRAMS / "linear.py").read_text().splitlines()


def _line(text: str) -> int:
    return next(number for number, line in enumerate(SOURCE, 1) if text in line)


def test_runs_are_counted_exactly_and_operations_stand_on_the_users_lines(run: Callable[..., Ran]) -> None:
    ran = run("linear.py", "300")
    assert ran.runs("jit(train_step)") == 300
    assert ran.runs("jit(evaluate)") == 30
    told = ran.profile.meta["available"]["jax"]
    assert told["runs"] >= 330 and 0 < told["timed_runs"] < told["runs"]
    assert f"from {told['timed_runs']:,} timed runs of {told['runs']:,}" in told["estimated"]

    [step] = ran.rows("jit(train_step)")
    planned = ran.profile.tree.node(step).detail["planned_bytes"]
    assert planned["temporaries"] > 0 and planned["arguments"] > 0
    assert ran.line(ran.parents[step]) == _line("weights, loss = train_step")
    products = [row for row in ran.rows("dot_general") if "jit(train_step)" in ran.path(row)]
    assert {ran.line(_python_above(ran, row)) for row in products} == {_line("jnp.tanh(x @ w)")}
    below = [ran.path(row)[ran.path(row).index("jit(train_step)") + 1 :] for row in products]
    assert ["on another thread", "forward", "train_step", "loss_fn", "layer", "head", "dot_general"] in below
    assert any(path[-2:] == ["backward", "dot_general"] for path in below)
    assert all(path.count("train_step") == 1 for path in below)  # no frame twice
    # 3 products forward, 2 for the gradient of each but the first, which needs none for its input.
    assert sum(ran.calls[row] for row in products) == 300 * 8


@pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 10),
    reason="JAX 0.8 does not tell which buffers are alive together",
)
def test_what_holds_the_peak_inside_of_a_program_is_on_the_lines_that_made_it(run: Callable[..., Ran]) -> None:
    """A network of three layers keeps what each of them results in until the backward pass has come to it."""
    ran = run("linear.py", "20")
    report = build_report(ran.profile)
    [program] = [one for one in report.programs if one.name == "jit(train_step)"]
    layers = [held for held in program.buffers if held.operation == "tanh"]
    assert program.at_peak and program.arguments_bytes == (3 * 128 * 128 + 2 * 256 * 128) * 4
    assert len(layers) == 3 and {held.bytes for held in layers} == {256 * 128 * 4}
    assert {held.place.line for held in layers if held.place} == {_line("jnp.tanh(x @ w)")}
    assert sum(held.bytes for held in program.buffers) <= program.temporaries_bytes
    assert {ran.paths[held.node] for held in layers if held.node is not None} == {"tanh"}
    assert ran.paths[program.node] == "jit(train_step)"
    text = render_text(report, 120)
    assert "jit(train_step): 512 KiB of temporaries (448 KiB arguments, 192 KiB results), at their peak:" in text
    assert "128 KiB  linear.py:10 layer  tanh" in text
    assert "`linear.py:10 layer`" in render_markdown(report)
    assert json.loads(render_json(report))["programs"][0]["buffers"][0]["bytes"] == 256 * 128 * 4


def test_operation_time_is_on_a_line_of_the_program(run: Callable[..., Ran]) -> None:
    ran = run("linear.py", "300")
    inside = [row for row in range(len(ran.paths)) if "jit(train_step)" in ran.path(row)]
    whole = sum(ran.time_ns[row] for row in inside)
    placed = sum(ran.time_ns[row] for row in inside if any(SOURCE_NAME in name for name in _files(ran, row)))
    assert whole > 0
    assert placed >= 0.995 * whole


@pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)
def test_compilation_hangs_on_the_line_that_caused_it(run: Callable[..., Ran]) -> None:
    ran = run("linear.py", "20")
    compiled = [
        row
        for row in ran.rows("compile")
        if ran.profile.tree.text("detail", int(ran.profile.tree.frame_of[row])) == '{"function": "train_step"}'
    ]
    [row] = compiled
    assert ran.calls[row] == 1
    assert ran.line(ran.parents[row]) == _line("weights, loss = train_step")
    assert {ran.paths[child] for child, parent in enumerate(ran.parents) if parent == row} >= {
        "compile: lower",
        "compile: XLA",
    }


SOURCE_NAME = "linear.py"


def _files(ran: Ran, row: int) -> list[str]:
    """Files of the frames between a node and the program around it."""
    tree = ran.profile.tree
    files = []
    while row >= 0 and not ran.paths[row].startswith("jit("):
        files.append(Path(tree.text("file", int(tree.frame_of[row]))).name)
        row = ran.parents[row]
    return files


def _python_above(ran: Ran, row: int) -> int:
    while not ran.line(row):
        row = ran.parents[row]
    return row


def test_a_program_that_is_compiled_again_says_which_argument_is_another(run: Callable[..., Ran]) -> None:
    ran = run("shapes.py")
    details = [ran.profile.tree.node(row).detail for row in ran.rows("compiled again")]
    assert {"function": "scaled", "change": "x: f32[8,4], was f32[16,4]"} in details
    assert ran.runs("jit(scaled)") == 7
