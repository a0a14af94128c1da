"""A gain that a profile bounds badly is said with the command that measures it; the fix in it exists."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.analysis.drawn_jax import PAIRS

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding, Gain, Severity
from leadline.analysis.measurable import FIXES, with_command
from leadline.analysis.rules import RULES
from leadline.remedies.registry import names, parse
from leadline.report.findings.words import gain_text

_META: dict[str, Any] = {"program": {"argv": ["train.py", "--lr", "1e-3"]}, "host": {"cpus": 8}}
_RANGE = re.compile(r"\(\S+( \S+)? to ")


def _finding(rule: str, high_ns: int, fix: str = "") -> Finding:
    gain = Gain(1_000_000, 2_000_000, high_ns, "bound: what it takes", of_ns=10_000_000)
    return Finding(rule, Severity.WARNING, "title", gain, (), (), (), "do it", fix=fix)


@pytest.mark.parametrize("rule", [one.name for one in RULES])
def test_a_wide_range_gives_way_to_a_command_that_exists(rule: str) -> None:
    found = with_command(_finding(rule, 9_000_000), _META)
    text = gain_text(found)
    assert not _RANGE.search(text)
    assert found.measured_by in text
    if found.fix:
        assert found.measured_by == f"leadline try --fix {found.fix} train.py --lr 1e-3"
        assert parse(found.fix)
    else:
        assert "leadline prove" in text


@pytest.mark.parametrize("rule", [one.name for one in RULES])
def test_a_narrow_range_is_said(rule: str) -> None:
    text = gain_text(with_command(_finding(rule, 3_000_000), _META))
    assert "(1.00 ms to 3.00 ms)" in text
    assert "leadline" not in text


def test_every_fix_of_the_table_is_shipped_and_every_rule_of_it_is_asked() -> None:
    assert {fix for fixes in FIXES.values() for fix in fixes} <= set(names())
    assert set(FIXES) <= {rule.name for rule in RULES} | {"not_explained"}


def test_a_program_of_jax_is_not_sent_to_a_fix_of_torch() -> None:
    meta = {**_META, "available": {"jax": {"ok": True}}}
    assert with_command(_finding("python_overhead", 9_000_000), meta).fix == ""
    assert with_command(_finding("garbage_collection", 9_000_000), meta).fix == "gc_freeze"
    assert with_command(_finding("op_by_op", 9_000_000, "jit=step"), meta).fix == "jit=step"


def test_a_trace_is_no_program_that_could_be_run_again() -> None:
    """What it calls its program is the file that was read."""
    meta = {"program": {"argv": ["trace.json.gz"]}, "available": {"import": {"ok": True}, "torch": {"ok": True}}}
    assert (
        with_command(_finding("python_overhead", 9_000_000), meta).measured_by == "leadline try --fix compile PROGRAM"
    )


@pytest.mark.parametrize(("rule", "fix"), [("donation", "donation=step"), ("op_by_op", "jit=main")])
def test_a_finding_about_a_function_of_jax_names_it(rule: str, fix: str) -> None:
    problem, *_ = PAIRS[rule]
    (found,) = (one for one in analyze(problem()) if one.rule == rule)
    assert found.fix == fix
    assert found.measured_by.startswith(f"leadline try --fix {fix} ")
