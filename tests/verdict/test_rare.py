"""What only every n-th step does is a part of the account at the line of the loop that does it, and no step's work."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.capture.conftest import Workplace

import leadline
from leadline.analysis.sourcecode import Source
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.verdict.judge import judge
from leadline.verdict.text import as_lines

PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def evaluate():
    with torch.no_grad():
        for _ in range(40):
            model(torch.ones(2048, 64)).square().mean().item()

def train(steps=100):
    for step in range(steps):
        loss = model(torch.ones(8, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            evaluate()

train()
"""


def test_evaluation_every_tenth_step_is_the_verdict_at_the_line_that_calls_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    place = Workplace(tmp_path)
    program = place.write("train.py", PROGRAM)
    line = 1 + next(n for n, text in enumerate(program.read_text().splitlines()) if text == "            evaluate()")
    assert place.leadline("run", "-q", "-o", "run.leadline", "train.py").returncode == 0
    profile = leadline.open(tmp_path / "run.leadline")
    assert profile.verdict.kind == "rare", profile.verdict.sentence
    assert f"train.py:{line}" in profile.verdict.sentence
    [one] = [one for one in profile.findings() if "in 10 of 100 steps" in one.title]
    assert one.lines[0].line == line
    assert any("evaluate" in text for text in one.evidence)
    assert one.remedy.startswith("Call it less often")


@pytest.mark.parametrize(
    ("text", "line", "body"),
    [
        ("for n in range(9):\n    if n % 3 == 0:\n        a()\n        b()\n    c()\n", 4, range(3, 5)),
        ("for n in range(9):\n    if n % 3 == 0:\n        a()\n    else:\n        b()\n", 5, range(0)),
        ("for n in range(9):\n    if n > 3:\n        a()\n", 3, range(0)),
        ("for n in range(9):\n    if (n + 1) % 3 == 0 and n:\n        a()\n", 3, range(3, 4)),
    ],
)
def test_the_source_says_what_every_nth_step_comes_to(text: str, line: int, body: range) -> None:
    assert Source(tuple(text.splitlines()), ast.parse(text), "").now_and_then(line) == body


def test_what_some_steps_do_is_named_beside_what_else_is_said_of_the_loops_function(tmp_path: Path) -> None:
    """A finding at another line of the function that has the loop."""
    file = tmp_path / "train.py"
    lines = [
        "def train():",
        "  for n in range(20):",
        "    step()",
        "    if n % 10 == 9:",
        "      evaluate()",
        "    note()",
    ]
    file.write_text("\n".join(lines) + "\n")
    profile = build(f"""
    process train.py | pid=5
      thread MainThread | tid=5 wall_ns=600000000
        python train @ {file}:3
          operator aten::mm | time=100000000/20 call_time=100000000/20
          phase optimizer | time=20000000/20 call_time=20000000/20
        python train @ {file}:5
          python evaluate @ {tmp_path}/evaluate.py:9
            operator aten::mm | time=200000000/2 call_time=200000000/2
        python train @ {file}:6
          phase saving | call_time=200000000/20
    """)
    assert {one.lines[0].line for one in profile.findings() if one.lines} >= {5, 6}


def generated(tmp_path: Path, line: str, inside: str = "module model [Decoder]") -> Profile:
    """Twenty steps of 10 ms, and a line before the inner loop, which two of them come to, of 4 ms a step."""
    file = tmp_path / "generate.py"
    file.write_text(f"def main():\n  for request in requests:\n    {line}\n    for i in range(10):\n      step(out)\n")
    profile = build(f"""
    process generate.py | pid=5
      thread MainThread | tid=5 wall_ns=300000000
        python main @ {file}:3
          phase forward
            {inside}
              operator aten::embedding | time=1000000/2 call_time=1000000/2
              operator aten::mm | time=79000000/2 call_time=79000000/2
        python main @ {file}:5
          module model [Decoder]
            operator aten::mm | time=120000000/20 call_time=120000000/20
          phase step | call_time=200000000/20
    """)
    profile.meta["program"] = {"argv": ["generate.py"], "cwd": str(tmp_path)}
    return profile


def of_line(profile: Profile) -> tuple[list[str], list[str], str]:
    """Titles and remedies of findings, and the verdict's lines, where they are about the line that two steps come to."""
    found = [one for one in profile.findings() if one.lines and one.lines[0].line == 3]
    return [one.title for one in found], [one.remedy for one in found], "\n".join(as_lines(judge(profile), 1000))


def test_a_prefill_is_named_by_what_its_line_calls_and_is_not_to_be_left_out(tmp_path: Path) -> None:
    titles, remedies, text = of_line(generated(tmp_path, "out = model(request, cache, 0)"))
    assert [one.partition(", takes")[0] for one in titles] == ["model in main, in 2 of 20 steps"]
    assert "what does not happen in every step" in text
    assert "happens in 2 of 20 steps" in text
    assert not any("less often" in one for one in (*remedies, text))


def test_an_evaluation_on_such_a_line_may_be_called_less_often(tmp_path: Path) -> None:
    titles, remedies, text = of_line(generated(tmp_path, "score = model(request.val_batch)"))
    assert titles and all(one.startswith("Call it less often") for one in remedies)
    assert "Call it less often" in text


def test_a_line_that_calls_several_things_is_named_by_its_text(tmp_path: Path) -> None:
    titles, _, _ = of_line(generated(tmp_path, "out = pad(draw(request))"))
    assert titles[0].startswith("`out = pad(draw(request))` in main, in 2 of 20 steps")


LIGHTNING = "/venv/lib/python3.11/site-packages/lightning/pytorch"


def fitted(validating_ms: int) -> str:
    """Ten steps of Trainer.fit, with two batches of validation behind each, in the loop of Lightning itself."""
    ns = 10 * 1_000_000
    return f"""
    process fit.py | pid=5
      thread MainThread | tid=5 wall_ns=900000000
        python main @ /home/ada/fit.py:55
          python Trainer.fit @ {LIGHTNING}/trainer/trainer.py:584
            python _TrainingEpochLoop.run @ {LIGHTNING}/loops/training_epoch_loop.py:150
              python Credit.training_step @ /home/ada/fit.py:25
                operator aten::mm | time={2 * ns}/10 call_time={2 * ns}/10
              phase optimizer | time={ns}/10 call_time={ns}/10
            python _TrainingEpochLoop.run @ {LIGHTNING}/loops/training_epoch_loop.py:152
              python _EvaluationLoop.run @ {LIGHTNING}/loops/evaluation_loop.py:147
                python Credit.validation_step @ /home/ada/fit.py:31
                  operator aten::mm | time={validating_ms * ns}/20 call_time={validating_ms * ns}/20
    """


@pytest.mark.parametrize(("validating_ms", "kind"), [(20, "rare"), (1, "compute")])
def test_validation_inside_of_a_framework_s_loop_is_told_from_training(validating_ms: int, kind: str) -> None:
    profile = build(fitted(validating_ms))
    verdict = judge(profile)
    assert verdict.kind == kind, verdict.sentence
    if kind == "rare":
        assert "validation in main" in verdict.sentence
        assert verdict.place is not None and verdict.place.line == 55
        assert "validation_step" in verdict.place.below
