"""One output has one share for one thing: findings and the account of a step leave out the same waits."""

from __future__ import annotations

import re

import pytest
from tests.analysis.test_findings import MS, training
from tests.verdict.drawn import operator

from leadline.analysis.findings import Finding
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.verdict.model import Verdict

STEPS = 10
LINES = {
    "random_numbers": (
        "python main @ /home/ada/train.py:43",
        operator("  ", "aten::dropout", 0, STEPS),
        operator("    ", "aten::bernoulli_", 4, STEPS),
    ),
    "optimizer_loop": (
        "python main @ /home/ada/train.py:43",
        f"  phase optimizer | time={MS}/{STEPS} call_time={MS}/{STEPS}",
        operator("    ", "aten::sqrt", 5, 100 * STEPS),
    ),
    "garbage_collection": (
        "python main @ /home/ada/train.py:43",
        f"  phase garbage collection | call_time={30 * MS}/{STEPS}",
    ),
}
PART = {"random_numbers": "random", "optimizer_loop": "optimizer", "garbage_collection": "collection"}


def contended(rule: str, ran: float) -> Profile:
    """Steps of 10 ms; operators have a core in so much of their time."""
    wall = 10 * MS * STEPS
    lines = [
        "process train.py | pid=5",
        f"  thread MainThread | tid=5 wall_ns={wall} cpu_ns={int(ran * wall)} operator_ns={9 * MS * STEPS} "
        f"operator_running_time={int(ran * 9 * MS * STEPS)}/{STEPS}",
        f"    phase step | call_time={10 * MS * (STEPS - 1)}/{STEPS - 1} "
        f"step_running={int(ran * 10 * MS) * (STEPS - 1)}/{STEPS - 1} "
        f"step_core_wait={int((1 - ran) * 10 * MS) * (STEPS - 1)}/{STEPS - 1}",
        *("    " + line for line in LINES[rule]),
        "    python main @ /home/ada/train.py:44",
        f"      operator aten::mm | time={3 * MS * STEPS}/{STEPS} call_time={3 * MS * STEPS}/{STEPS}",
        "    python main @ /home/ada/train.py:45",
        f"      phase optimizer | time={STEPS}/{STEPS} call_time={STEPS}/{STEPS}",
    ]
    profile = build("\n".join(lines))
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    return profile


@pytest.mark.parametrize("ran", [1.0, 0.5])
@pytest.mark.parametrize("rule", LINES)
def test_a_finding_and_the_account_agree_on_a_share(rule: str, ran: float) -> None:
    profile = contended(rule, ran)
    (one,) = (one for one in profile.findings() if one.rule == rule)
    account = profile.verdict.account
    assert account is not None
    assert account.share("core") == pytest.approx(1 - ran, abs=0.02)
    said = float(re.findall(r"([\d.]+) %", one.title)[-1])
    # calling operators is a part of its own, and of the optimizer's doing
    assert said == pytest.approx(100 * account.share(PART[rule]), abs=2.1 if rule == "optimizer_loop" else 0.51)


@pytest.mark.parametrize("ran", [1.0, 0.5])
@pytest.mark.parametrize("rule", ["random_numbers", "garbage_collection"])
def test_what_a_finding_says_is_not_said_again_with_the_parts_of_the_step(rule: str, ran: float) -> None:
    facts = contended(rule, ran).verdict.because
    name = {"random_numbers": "random numbers", "garbage_collection": "garbage collect"}[rule]
    assert sum(name in fact.lower() for fact in facts) == 1


def test_what_the_sentence_says_of_a_function_is_no_fact_as_well() -> None:
    lines = ("python main @ /home/ada/train.py:43", "  python prepare @ /home/ada/data.py:6 | cpu_sample=300000000/400")
    profile = training(*lines)
    verdict = profile.verdict
    assert verdict.kind == "python" and "prepare takes" in verdict.sentence
    assert any(one.rule == "python_overhead" for one in profile.findings())
    assert [fact for fact in verdict.because if "% of the step in Python code" in fact] == []
    assert "python_overhead" in [fix.rule for fix in verdict.fixes]


def test_what_a_finding_says_of_a_function_is_not_said_again_as_pythons_share() -> None:
    lines = ("python main @ /home/ada/train.py:43", "  python prepare @ /home/ada/data.py:6 | cpu_sample=50000000/100")
    products = ("python main @ /home/ada/train.py:46", operator("  ", "aten::mm", 9, STEPS))
    profile = training(*lines, *products)
    facts = [fact for fact in profile.verdict.because if "prepare" in fact]
    assert len(facts) == 1 and "% of the step in Python code" in facts[0]


def dropping(ms: float, other_ms: float = 0) -> tuple[Verdict, Finding]:
    other = (
        ("python main @ /home/ada/train.py:47", operator("  ", "aten::to_dense", other_ms, STEPS)) if other_ms else ()
    )
    rest = "operator aten::mm | time={0}/10 call_time={0}/10".format(int((9 - ms) * STEPS * MS))
    made = ("python main @ /home/ada/train.py:43", f"  {rest}", *LINES["random_numbers"][1:2])
    profile = training(*made, operator("    ", "aten::bernoulli_", ms, STEPS), *other)
    return profile.verdict, next(one for one in profile.findings() if one.rule == "random_numbers")


def test_no_dropout_is_a_choice_that_changes_the_training_and_comes_last() -> None:
    verdict, found = dropping(5, other_ms=4)
    assert found.changes_result and "changes the training" in found.remedy
    rules = [fix.rule for fix in verdict.fixes]
    assert len(rules) > 1 and rules.index("random_numbers") == len(rules) - 1
    assert "changes the training" in verdict.fixes[-1].do


@pytest.mark.parametrize(("ms", "proposed"), [(5, True), (2.4, False)])
def test_no_dropout_stands_alone_only_where_it_takes_much_of_the_step(ms: float, proposed: bool) -> None:
    verdict, _ = dropping(ms)
    assert [fix.rule for fix in verdict.fixes] == (["random_numbers"] if proposed else [])
