"""Planted problems that only a device has: found in what was recorded of them, and anew over stand-ins of its libraries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.amd import fake_gpu

from leadline.cli.main import main

PROBLEMS = Path(__file__).resolve().parents[2] / "examples" / "problems"
LISTED = json.loads((PROBLEMS / "problems.json").read_text())
RULES = {name: told["rule"] for name, told in LISTED.items() if told.get("device") == "amd"}
LINKS = ("libamdhip64.so", "libhiprtc.so", "librocprofiler-sdk-roctx.so")
"""As programs name them."""


def found(file: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Rules and lines of what `leadline analyze` says, in its order."""
    capsys.readouterr()
    assert main(["analyze", str(file), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["findings"]
    return [(one["rule"], [(Path(line["file"]).name, line["line"]) for line in one["lines"]]) for one in said]


def check(name: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The problem is named on its line among the first three; the twin is not blamed."""
    text = (PROBLEMS / name / "problem.py").read_text().splitlines()
    planted = next(number for number, line in enumerate(text, start=1) if line.endswith("# problem"))
    told = found(files["problem"], capsys)
    named = [lines for rule, lines in told[:3] if rule == RULES[name]]
    assert named and ("problem.py", planted) in named[0], told
    assert RULES[name] not in [rule for rule, _ in found(files["fixed"], capsys)]


@pytest.mark.parametrize("name", RULES)
def test_the_planted_problem_is_found_in_what_was_recorded(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = PROBLEMS / name / "recorded"
    check(name, {kind: recorded / f"{kind}.leadline" for kind in ("problem", "fixed")}, capsys)


@pytest.mark.parametrize("name", RULES)
def test_the_planted_problem_is_found_when_it_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    fakes = tmp_path / "rocm"
    fakes.mkdir()
    fake_gpu.build(fakes, compiler)
    for link in LINKS:
        (fakes / link).symlink_to(next(path for path in fakes.iterdir() if path.name.startswith(f"{link}.")))
    files = {kind: tmp_path / f"{kind}.leadline" for kind in ("problem", "fixed")}
    for kind, output in files.items():
        status, said = fake_gpu.run_program(output, fakes, program=PROBLEMS / name / f"{kind}.py")
        assert status == 0, said
    check(name, files, capsys)
