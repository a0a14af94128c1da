"""A large part of the step that no rule names is a finding of its own, and one that a rule names is not said twice."""

from __future__ import annotations

from tests.verdict.test_account import counted, drawn, operator, python, slept

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding, Findings, Severity


def rest(found: Findings) -> list[Finding]:
    return [one for one in found if one.rule == "not_explained"]


def test_a_sleep_is_a_warning_at_its_line_with_the_gain_of_leaving_it():
    [one] = rest(analyze(drawn(*operator("aten::mm", 0.5), *slept(7, 45), counts=counted(2.2, 0))))
    assert (one.severity, one.lines[0].short, one.lines[0].line) == (Severity.WARNING, "train.py", 45)
    assert "sleeps" in one.title
    assert 4e6 < one.gain.expected_ns <= one.gain.high_ns <= 8e6


def test_a_product_is_named_without_a_warning_and_gives_no_fix():
    profile = drawn(*operator("aten::mm", 8))
    [one] = rest(analyze(profile))
    assert (one.severity, one.lines[0].line, one.gain.expected_ns) == (Severity.INFO, 42, 0)
    assert "aten::mm" in one.title
    assert all(fix.rule != "not_explained" for fix in profile.verdict.fixes)


def test_what_a_rule_names_is_not_said_twice():
    found = analyze(drawn(*python("sample", 8, 12)))
    assert any(one.rule == "python_overhead" and one.lines[0].line == 12 for one in found)
    assert not rest(found)


def test_whoever_asks_for_one_rule_is_told_of_that_one():
    assert not rest(analyze(drawn(*operator("aten::mm", 8)), ["hotspot"]))
    assert rest(analyze(drawn(*operator("aten::mm", 8))))
