"""The runner of foreign programs: holds where all is well, and tells a program that cannot run and counts that differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.foreign.checks import Theirs, differences
from tests.foreign.run import check, main

import leadline

torch = pytest.importorskip("torch", reason="the programs need torch, which is not installed here")

PROGRAM = """
import torch
layer = torch.nn.Linear(4, 4)
for _ in range(6):
    layer(torch.ones(2, 4)).sum().backward()
"""


def test_a_small_program_holds(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(PROGRAM)
    outcome = check(tmp_path / "small.py", "train", tmp_path)
    assert outcome.wrong == []
    assert outcome.processes == 1 and outcome.calls > 20


def test_a_program_that_cannot_run_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "absent.py").write_text("import no_such_library")
    assert main([str(tmp_path / "absent.py"), "--results", str(tmp_path / "table.md")]) == 1
    assert "No module named 'no_such_library'" in capsys.readouterr().out
    assert "| absent | train | 0 | 0 | 0 | 1 wrong | none | none |" in (tmp_path / "table.md").read_text()


def test_counts_bytes_and_times_that_differ_are_told(tmp_path: Path) -> None:
    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        torch.ones(1000)
    profile = leadline.open(tmp_path / "x.leadline")
    ones = next(node.exclusive("call_time").sum for node in profile.tree.find(kind="operator", name="aten::ones"))

    def told(operators: dict[str, tuple[int, int]], allocated: int) -> list[str]:
        (tmp_path / "x.json").write_text(json.dumps({"operators": operators, "bytes": [allocated, 4000]}))
        return list(differences(profile, Theirs.read(tmp_path / "x.json")))

    real = {"aten::ones": (1, ones), "aten::empty": (1, 0), "aten::fill_": (1, 0)}
    assert told(real, 4000) == []
    assert told({**real, "aten::ones": (2, ones)}, 4000) == ["aten::ones: 1 calls, torch.profiler saw 2"]
    assert told(real, 8000) == ["4000 bytes allocated, torch.profiler saw 8000"]
    (late,) = told({**real, "aten::ones": (1, ones + 500_000_000)}, 4000)
    assert late.startswith(f"aten::ones: {ones} ns in 1 calls")
