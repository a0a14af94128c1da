"""A fix says what to do in whole clauses: never a reason alone, never cut inside of one."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from tests.analysis.test_findings import training
from tests.verdict.drawn import held, operator

from leadline.analysis import rules
from leadline.analysis.already import NOTHING_NEW
from leadline.verdict.crowd import Crowd
from leadline.verdict.fixes import _imperative, fixes
from leadline.verdict.resource import critical

_NO_VERBS = frozenset(
    [
        "a",
        "an",
        "the",
        "it",
        "its",
        "each",
        "every",
        "there",
        "this",
        "these",
        "such",
        "few",
        "too",
        "no",
        "data",
        "what",
        "where",
        "which",
        "by",
    ]
)


def remedies() -> list[str]:
    """Every text of two words and more that begins with a capital and ends with a full stop in the rules' sources."""
    found = []
    for file in sorted(Path(rules.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else ""
            if (
                isinstance(text, str)
                and id(node) not in docs
                and text[:1].isupper()
                and text.endswith(".")
                and " " in text
            ):
                found.append(text)
    return found


def test_every_fix_begins_with_what_to_do() -> None:
    texts = remedies()
    assert len(texts) > 60
    made = [(text, _imperative(text)) for text in texts]
    assert [text for text, fix in made if fix.split()[0].lower() in _NO_VERBS] == []
    assert [fix for _, fix in made if fix.endswith(("…", ",", " and", " or")) or fix.count("(") != fix.count(")")] == []


@pytest.mark.parametrize(
    ("remedy", "fix"),
    [
        ("Use a set; it is faster.", "Use a set"),
        ("A Python number is given once: give the same each time.", "Give the same each time"),
        ("Each turn needs the last one; do several in one turn, and log less.", "Do several in one turn, and log less"),
        ("Keep it (" + "long reason " * 30 + ") there. Then rest.", "Keep it there"),
        ("Do " + "this and that, " * 30 + "then rest.", "Do " + "this and that, " * 12 + "this and that"),
    ],
)
def test_a_fix_is_whole_clauses(remedy: str, fix: str) -> None:
    assert _imperative(remedy) == fix


@pytest.mark.parametrize(("own_ms", "proposed"), [(0.3, False), (0.6, True)])
def test_what_gains_less_than_a_fiftieth_of_the_step_is_no_fix(own_ms: float, proposed: bool) -> None:
    """Half of a function's own time is what a change of it gains, and all of it what it gains at most."""
    lines = (
        "python main @ /home/ada/train.py:43",
        f"  python prepare @ /home/ada/data.py:6 | cpu_sample={int(own_ms * 1e7)}/40",
    )
    verdict = training(*lines).verdict
    assert [one.place.text for one in verdict.fixes if one.rule == "python_overhead" and one.place] == (
        ["data.py:6"] if proposed else []
    )
    assert all(one.gain_ns * 50 >= verdict.account.wall_ns for one in verdict.fixes)


@pytest.mark.parametrize("dense_ms", [0.8, 1, 2, 6])
@pytest.mark.parametrize("loading_ms", [1, 4])
def test_the_reason_of_the_first_fix_stands_above_it(dense_ms: float, loading_ms: int) -> None:
    made = operator("  ", "aten::to_dense", dense_ms, 10)
    profile = training("python main @ /home/ada/train.py:43", made, loading_ms=loading_ms)
    verdict = profile.verdict
    (first, *_) = verdict.fixes
    reasons = [one.title for one in profile.findings() if one.rule == first.rule]
    assert any(title in fact for title in reasons for fact in verdict.because)


def test_that_the_usual_remedy_is_in_use_is_no_fix() -> None:
    profile = training("python main @ /home/ada/train.py:43", operator("  ", "aten::to_dense", 6, 10), loading_ms=1)
    verdict, found = profile.verdict, list(profile.findings())
    resource = critical(verdict.account)
    assert fixes(found, verdict.account, resource, Crowd())
    in_use = [replace(one, remedy=f"{NOTHING_NEW} (torch.compile): inspect the paths one by one.") for one in found]
    assert not fixes(in_use, verdict.account, resource, Crowd())


@pytest.mark.parametrize("core_ms", [1.5, 6])
def test_a_remedy_does_not_stand_above_a_larger_one(core_ms: float) -> None:
    """A thread that holds the interpreter for 2 ms of a step of 10, and waits for a core that eight threads of its
    operators have."""
    profile = held(2, 9, core_ms)
    profile.meta["available"] = {"torch": {"habits": {"threads": {"threads": 8, "cores": 2}}}}
    gains = [one.gain_ns for one in profile.verdict.fixes]
    assert len(gains) >= 2
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("core_ms", [1.5, 6])
def test_to_stop_other_programs_comes_after_what_the_program_itself_can_do(core_ms: float) -> None:
    verdict = held(2, 9, core_ms).verdict
    assert [one.rule == "core" for one in verdict.fixes] == [False] * (len(verdict.fixes) - 1) + [True]
    assert "other programs used its cores" in verdict.trust


def test_who_waits_for_no_core_is_not_disturbed() -> None:
    assert "other programs" not in held(2, 9).verdict.trust


def test_at_most_three_fixes_with_that_for_cores() -> None:
    profile = held(2, 9, 1.5)
    found = list(profile.findings())
    line = found[0].lines[0]
    several = [replace(found[0], lines=(replace(line, line=line.line + at),)) for at in range(5)]
    verdict = profile.verdict
    assert verdict.account is not None
    for others in (Crowd(), Crowd(own=True)):
        assert len(fixes(several, verdict.account, critical(verdict.account), others)) <= 3
