"""What stands before or behind the loop over a loader is no part of its step, though its first line is the loop's head."""

from __future__ import annotations

from pathlib import Path

from leadline.analysis.analyze import analyze
from leadline.analysis.case import case_of
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS, STEPS = 1_000_000, 20
SOURCE = """\
def write_log(path):
    return [draw() for _ in range(9000)]
def main(loader):
    write_log("log")
    for batch in loader:
        loss = model(batch)
        optimizer.step()
    os.remove("log")
main(loader)
"""


def drawn(file: Path) -> Profile:
    file.write_text(SOURCE)
    ns, each = STEPS * MS, f"{STEPS * MS}/{STEPS}"
    return build(
        f"""
        process {file.name} | pid=5
          thread main | tid=5 wall_ns={40 * ns} cpu_ns={30 * ns}
            phase step | call_time={10 * (STEPS - 1) * MS}/{STEPS - 1}
            python <module> @ {file}:9
              python main @ {file}:4
                python write_log @ {file}:2 | cpu_sample={20 * ns}/400
              python main @ {file}:5
                phase data loading | time={each} call_time={each}
              python main @ {file}:6 | cpu_sample={2 * ns}/40
                operator aten::addmm | time={4 * ns}/{STEPS} call_time={4 * ns}/{STEPS}
              python main @ {file}:7
                phase optimizer | time={each} call_time={each}
              python main @ {file}:8 | cpu_sample={5 * ns}/100
        """
    )


def test_set_up_and_what_follows_are_left_out(tmp_path: Path) -> None:
    profile = drawn(tmp_path / "train.py")
    case = case_of(profile)
    assert case.loop.steps == STEPS
    lines = {case.tree.node(row).line for row in case.loop.inside.nonzero()[0].tolist()}
    assert {5, 6, 7} <= lines and not lines & {2, 4, 8}
    assert case.sampled_ns == 2 * STEPS * MS
    assert not [one for one in analyze(profile) if "write_log" in one.title]


INSIDE = """\
def update(batch):
    loss = model(batch)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
def main(loader):
    for batch in loader:
        update(batch)
main(loader)
"""


def test_a_loop_over_optimizers_in_a_step_is_not_the_loop_of_steps(tmp_path: Path) -> None:
    """What a step computes stands before that loop, in a function of its own."""
    file = tmp_path / "train.py"
    file.write_text(INSIDE)
    ns, each = STEPS * MS, f"{STEPS * MS}/{STEPS}"
    profile = build(
        f"""
        process {file.name} | pid=5
          thread main | tid=5 wall_ns={40 * ns} cpu_ns={30 * ns}
            phase step | call_time={10 * (STEPS - 1) * MS}/{STEPS - 1}
            python <module> @ {file}:9
              python main @ {file}:8
                python update @ {file}:2 | cpu_sample={2 * ns}/40
                  operator aten::addmm | time={4 * ns}/{STEPS} call_time={4 * ns}/{STEPS}
                    phase backward
                      operator AddmmBackward0 | time={3 * ns}/{STEPS} call_time={3 * ns}/{STEPS}
                python update @ {file}:5
                  phase optimizer | time={each} call_time={each}
        """
    )
    case = case_of(profile)
    lines = {case.tree.node(row).line for row in case.loop.inside.nonzero()[0].tolist()}
    assert {2, 5, 8} <= lines
    assert profile.verdict.account is not None and profile.verdict.account.share("products") > 0.69
