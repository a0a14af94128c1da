"""Each program of examples/problems names its planted problem on the right line among the first three findings; its
fixed twin lacks that finding. The programs run one after another in one process, which imports torch once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.analysis.analyze import analyze

pytest.importorskip("torch", reason="the programs need torch")

PROBLEMS = Path(__file__).resolve().parents[2] / "examples" / "problems"
RULES = {name: told["rule"] for name, told in json.loads((PROBLEMS / "problems.json").read_text()).items()}
ALWAYS = ("frozen", "garbage", "item", "kept_graph", "printing", "sample_loop", "unfused", "growing_cat")
RUN = """
import runpy, sys, leadline, torch
for path, output in zip(sys.argv[1::2], sys.argv[2::2]):
    with leadline.profile(output):
        runpy.run_path(path, run_name="__main__")
"""
CASES = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in RULES]


def profiles(name, tmp_path):
    """The profiles of the problem and of its fixed twin."""
    outputs = {kind: tmp_path / f"{kind}.leadline" for kind in ("problem", "fixed")}
    pairs = [str(word) for kind, output in outputs.items() for word in (PROBLEMS / name / f"{kind}.py", output)]
    done = subprocess.run([sys.executable, "-c", RUN, *pairs], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return {kind: leadline.open(output) for kind, output in outputs.items()}


def planted_line(name):
    lines = (PROBLEMS / name / "problem.py").read_text().splitlines()
    return next(number for number, text in enumerate(lines, start=1) if text.endswith("# problem"))


@pytest.mark.parametrize("name", CASES)
def test_the_planted_problem_is_named_and_its_twin_is_not_blamed(name, tmp_path):
    measured = profiles(name, tmp_path)
    found = analyze(measured["problem"])
    told = [(one.rule, [line.line for line in one.lines]) for one in found]
    named = [lines for rule, lines in told[:3] if rule == RULES[name]]
    assert named, told
    assert planted_line(name) in named[0], told
    twin = [one.rule for one in analyze(measured["fixed"])]
    assert RULES[name] not in twin, twin


def test_every_pair_is_listed():
    assert {path.name for path in PROBLEMS.iterdir() if path.is_dir()} == set(RULES)
