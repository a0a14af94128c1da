"""Every test that the table of faults names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "bench" / "results" / "never_harm.md"
NAMED = re.compile(r"`(?P<file>(?:tests|native)/[\w./-]+)?::(?P<test>[^`]+)`")


def test_the_table_of_faults_names_tests_that_are_there() -> None:
    missing, file, found = [], "", 0
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        for named in NAMED.finditer(line):
            file = named["file"] or file
            found += 1
            path = ROOT / file
            if not path.is_file() or named["test"] not in path.read_text(encoding="utf-8"):
                missing.append(f"{file}::{named['test']}")
    assert found > 50 and not missing


def test_every_fault_has_a_test_or_a_reason() -> None:
    rows = [line.strip("|").split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    told = [row for row in rows if row[0].strip() != "fault"]
    bare = [row[0] for row in told if not row[2].strip(" |") and "none" not in row[1] and "open" not in row[1]]
    assert not bare
