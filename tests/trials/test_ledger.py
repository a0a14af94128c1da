"""The ledger's figures, of entries with known answers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.trials.programs import write_profile

from leadline.profiles import open_profile
from leadline.profiles.tried import NAME, newest, of_rule, read, tried_beside
from leadline.trials import ledger
from leadline.verdict.text import fix_text


def _entry(measured: float, predicted: tuple[float, float, float] | None) -> dict[str, Any]:
    return {
        "program": "train.py",
        "remedy": "autocast",
        "measured": {"median": measured, "low": measured - 0.01, "high": measured + 0.01},
        "predicted": dict(zip(("median", "low", "high"), predicted, strict=True)) if predicted else None,
    }


def test_a_measurement_that_is_too_coarse_judges_no_range() -> None:
    """Its median lies outside of the range, its interval reaches it."""
    near, apart = _entry(-0.30, (-0.25, -0.295, -0.20)), _entry(-0.30, (-0.25, -0.28, -0.20))
    assert [ledger.has_held(one["measured"], one["predicted"]) for one in (near, apart)] == [None, False]
    found = ledger.summary([near, apart])
    assert (found.held, found.open, found.predicted) == (0, 1, 2)


def test_coverage_sharpness_and_error() -> None:
    entries = [
        _entry(-0.30, (-0.28, -0.35, -0.20)),  # held, 0.02 off, half of 0.15
        _entry(-0.10, (-0.20, -0.30, -0.15)),  # not held, 0.10 off, half of 0.15
        _entry(0.00, (-0.01, -0.05, 0.01)),  # held, 0.01 off, half of 0.06
        _entry(-0.5, None),
    ]
    found = ledger.summary(entries)
    assert (found.measured, found.predicted, found.held, found.open) == (4, 3, 2, 0)
    assert found.error == pytest.approx(0.02)
    assert found.half_width == pytest.approx(0.075)
    assert found.error_95 == pytest.approx(0.10)


def test_lines_that_are_no_entries_are_counted_and_lose_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / ledger.NAME
    path.write_text(json.dumps(_entry(-0.3, None)) + "\nnot json\n{}\n\n" + json.dumps(_entry(-0.2, None)) + "\n")
    entries, bad = ledger.read(path)
    assert [one["measured"]["median"] for one in entries] == [-0.3, -0.2]
    assert bad == 2


def test_the_newest_entry_of_each_remedy_counts() -> None:
    found = newest([_entry(-0.3, None), _entry(-0.2, None)], "train.py")
    assert found["autocast"]["measured"]["median"] == -0.2
    assert newest([_entry(-0.3, None)], "other.py") == {}


def test_a_finding_and_its_fix_show_what_was_measured_beside_what_was_predicted(tmp_path: Path) -> None:
    profile = tmp_path / "train.leadline"
    write_profile(profile)
    before = open_profile(str(profile))
    rule = before.findings()[0].rule
    program = shlex.join(before.meta["program"]["argv"])
    entry = _entry(-0.3, (-0.22, -0.35, -0.08)) | {"program": program, "rules": [rule]}
    (tmp_path / NAME).write_text(json.dumps(entry) + "\n")
    said = "autocast -30 % (-31 to -29), where -22 % (-35 to -8) was predicted"
    after = open_profile(str(profile))
    (finding,) = (one for one in after.findings() if one.rule == rule)
    assert finding.evidence[-1] == f"measured by leadline try: {said}"
    fixes = [one for one in after.verdict.fixes if one.rule == rule]
    assert [one.tried for one in fixes] == [said] * len(fixes)
    assert all(f"tried: {said}" in fix_text(one, after.verdict.account) for one in fixes)
    (tmp_path / NAME).write_text(json.dumps(entry | {"program": "another.py"}) + "\n")
    assert open_profile(str(profile)).tried == ()


@pytest.mark.parametrize("text", ["[]", "[1]", '{"remedy": 1}', "\x00", "{" * 3000])
def test_a_ledger_of_anything_is_no_reason_to_fail(tmp_path: Path, text: str) -> None:
    path = tmp_path / NAME
    path.write_text(text + "\n")
    assert tried_beside(tmp_path / "x.leadline", {"program": {"argv": ["train.py"]}}) == ()
    assert read(path) == ([], 1)


def test_what_was_measured_of_another_version_of_the_program_says_so(tmp_path: Path) -> None:
    file = str(tmp_path / "train.py")
    entry = _entry(-0.3, None) | {"rules": ["optimizer_loop"], "sources": {file: "a" * 64, "other.py": "b" * 64}}
    (tmp_path / NAME).write_text(json.dumps(entry) + "\n")

    def said(now: str) -> str:
        meta = {"program": {"argv": ["train.py"]}, "processes": [{"sources": {file: now}}]}
        return of_rule(tried_beside(tmp_path / "x.leadline", meta), "optimizer_loop")

    assert said("a" * 64) == "autocast -30 % (-31 to -29)"
    assert said("") == said("a" * 64)  # not known
    assert said("c" * 64) == "autocast -30 % (-31 to -29), with another train.py than this profile's"
