"""What autograd records without a backward pass behind it: drawn programs, and what they must not be blamed for."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training

from leadline.analysis.analyze import analyze
from leadline.profiles.profile import Profile

MS = 1_000_000
ENGINE = "autograd::engine::evaluate_function: "


def called(name: str, calls: int, ms: float, recorded: int = 0, more: str = "") -> str:
    ns = int(ms * MS) // calls * calls
    text = f"operator {name} | time={ns}/{calls} call_time={ns}/{calls}{more}"
    return text + (f" recorded={recorded}/{recorded}" if recorded else "")


def passes(line: int, calls: int, ms: float, recorded: int, backward: int = 0, more: str = "") -> list[str]:
    """A module called on that line, its operator, and how often that was recorded and gone back through."""
    lines = [
        f"python main @ /home/ada/train.py:{line}",
        "  phase forward",
        "    module teacher [Net]",
        "      " + called("aten::addmm", calls, ms, recorded, more),
    ]
    if backward:
        lines += ["        phase backward", "          " + called(ENGINE + "AddmmBackward0", backward, ms)]
    return lines


def program(*lines: str, told: bool = True, **how: int) -> Profile:
    profile = training(*lines, **how)
    profile.meta["available"] = {"torch": {"ok": True, "autograd": told}}
    return profile


def findings(profile: Profile):
    return [one for one in analyze(profile, ["redundant_work"]) if "recorded" in one.title]


def test_a_forward_pass_that_nothing_goes_back_through_is_named_with_what_calls_it():
    (found,) = findings(program(*passes(43, 10, 30, 10)))
    assert (
        found.title == "The forward pass of teacher is recorded for a backward pass that never runs, 23 % of the step"
    )
    assert found.severity.value == "warning"
    assert found.lines[0].line == 43
    assert found.evidence == ("none of the 10 calls that autograd recorded here has a backward pass",)
    assert found.gain.low_ns == 0 < found.gain.expected_ns < found.gain.high_ns
    assert "no_grad" in found.remedy


@pytest.mark.parametrize(
    "lines",
    [
        [*passes(43, 10, 30, 0), "      " + called("aten::solve", 10, 1, 10)]
        + ["      " + called(f"aten::op{one}", 10, 1) for one in range(9)],  # a cache that keeps its graph on purpose
        passes(43, 10, 30, 10, 10),  # trained
        passes(43, 10, 30, 0),  # below no_grad, or frozen
        passes(43, 10, 0.5, 10),  # 0.5 % of the step
        passes(43, 10, 30, 10, 9),  # the backward pass of one was not measured
        passes(43, 10, 30, 2),  # the ends of two windows
    ],
    ids=["a cache", "trained", "not recorded", "small", "an end", "ends"],
)
def test_others_are_left_alone(lines):
    assert findings(program(*lines)) == []


def test_profiles_that_do_not_tell_are_not_judged_by_it():
    assert findings(program(*passes(43, 10, 30, 10), told=False)) == []


def test_batches_of_evaluation_on_the_line_of_training_count_as_their_part():
    (found,) = findings(program(*passes(43, 20, 40, 20, 10)))
    assert "11 % of the step" in found.title  # half of 40 ms in 180
    assert found.evidence[0] == "10 of 20 calls that autograd recorded here have no backward pass"


def test_one_result_that_is_not_used_does_not_blame_its_module():
    lines = passes(43, 10, 30, 10, 10)
    lines[3:3] = ["      " + called("aten::tanh", 10, 30, 10)]
    assert findings(program(*lines)) == []


def test_candidates_of_which_one_is_chosen_are_trained():
    """The hardest of each batch goes on into the loss, on the same line."""
    lines = passes(43, 10, 30, 10, 10)
    lines[1:1] = ["  " + called("aten::select", 4000, 30, 4000)]
    assert findings(program(*lines)) == []


def test_memory_alone_is_reason_enough():
    (found,) = findings(program(*passes(43, 10, 2, 10, more=f" peak_live_bytes={8 * MS} alloc_bytes={80 * MS}/10")))
    assert found.severity.value == "warning"
    assert found.evidence[1] == "7.63 MiB of their results were alive at the peak, 100 % of it"


def test_lines_outside_of_modules_are_named_by_their_function():
    (found,) = findings(program("python shaped @ /home/ada/train.py:43", "  " + called("aten::exp", 10, 30, 10)))
    assert found.title.startswith("What shaped computes here is recorded for a backward pass that never runs")


def test_evaluation_between_epochs_counts_beside_the_step(tmp_path):
    """Too rare to be part of a step: its time is added to that of the steps."""
    profile = program(
        "python evaluate @ /home/ada/train.py:20",
        *("  " + line for line in passes(21, 8, 20, 8)),
        steps=200,
    )
    (found,) = findings(profile)
    assert "1.0 % of the step" in found.title
    assert found.severity.value == "info"


def test_what_a_backward_pass_computes_again_is_its_own():
    lines = [
        "python main @ /home/ada/train.py:43",
        "  " + called("CheckpointFunction", 10, 5, 10),
        "    phase backward",
        "      " + called(ENGINE + "CheckpointFunctionBackward", 10, 1),
        "        phase recompute",
        "          " + called("aten::addmm", 10, 30, 10),
    ]
    assert findings(program(*lines)) == []
