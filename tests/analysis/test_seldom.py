"""Of a line that not every step comes to: in how many of the steps it runs, and whether it may be left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.analysis.case import case_of
from leadline.analysis.seldom import may_be_left_out, runs_of
from leadline.profiles.build import build


def asked(tmp_path: Path, *lines: str, inside: str, at: int) -> tuple[int, bool]:
    """Of line `at`, in a loop of twenty steps whose third line is what each of them does."""
    file = tmp_path / "train.py"
    file.write_text("\n".join(("def main():", "  for step in range(20):", "    work()", *lines)) + "\n")
    profile = build(f"""
    process train.py | pid=5
      thread MainThread | tid=5 wall_ns=600000000
        python main @ {file}:3
          operator aten::mm | time=100000000/20 call_time=100000000/20
          phase optimizer | time=20000000/20 call_time=20000000/20
        python main @ {file}:{at}
          {inside}
    """)
    case = case_of(profile)
    row = next(row for row in range(len(case.tree)) if case.tree.node(row).line == at)
    return runs_of(case, row), may_be_left_out(case, row)


MODULE = """module model [Net]
            operator aten::embedding | time=1000000/2 call_time=1000000/2
            operator aten::mm | time=90000000/16 call_time=90000000/16"""
FUNCTION = """python helper @ /home/ada/helper.py:9
            operator aten::mm | time=90000000/8 call_time=90000000/8"""
OPERATOR = "operator aten::randint | time=90000000/4 call_time=90000000/4"


@pytest.mark.parametrize(
    ("lines", "inside", "at", "runs"),
    [
        (["    if new:", "      out = model(prompt)"], MODULE, 5, 2),
        (["    if new:", "      x = torch.randint(9, (4, 4))"], OPERATOR, 5, 4),
        (["    if new:", "      x = helper()"], FUNCTION, 5, 0),  # which may call it several times
        (["    if step % 5 == 4:", "      x = helper()"], FUNCTION, 5, 4),
        (["    if step % every == 0:", "      x = helper()"], FUNCTION, 5, 0),
    ],
    ids=["a module", "an operator", "a function", "every fifth step", "not known how often"],
)
def test_in_how_many_steps_a_line_runs(tmp_path: Path, lines: list[str], inside: str, at: int, runs: int) -> None:
    assert asked(tmp_path, *lines, inside=inside, at=at)[0] == runs


@pytest.mark.parametrize(
    ("lines", "left_out"),
    [
        (["    if new:", "      out = model(prompt)"], False),
        (["    if done:", "      obs = env.reset()"], False),
        (["    if step % 8 == 0:", "      target.load_state_dict(net.state_dict())"], False),
        (["    if step % 8 == 0:", "      y = torch.log(x)"], False),
        (["    if step % 8 == 0:", "      y = policy.log_prob(x)"], False),
        (["    if step % eval_every == 0:", "      out = model(x)"], True),
        (["    if step % 8 == 0:", "      run.log(figures(x))"], True),
        (["    if step % 8 == 0:", "      torch.save(net.state_dict(), path)"], True),
        (["    for x in val_loader:", "      out = model(x)"], True),
        (["    if new:", "      y = trainer.runValidation()"], True),
    ],
)
def test_only_what_its_names_say_may_be_left_out(tmp_path: Path, lines: list[str], left_out: bool) -> None:
    assert asked(tmp_path, *lines, inside=MODULE, at=5)[1] == left_out
