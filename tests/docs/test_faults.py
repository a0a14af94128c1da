"""docs/faults.md names tests: each one exists, and each row names one or says why there is none."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?!fault \||wall \||---)(.*?) \| (.*) \|$", re.MULTILINE)
TESTS = re.compile(r"`((?:native|tests)/[\w/.]+?_test\.cpp|tests/[\w/]+?/test_\w+\.py)`: ([^`]*?)(?=; `|$)")


def missing(name: str, text: str, path: str) -> bool:
    if path.endswith(".py"):
        return re.search(rf"^\s*def {re.escape(name)}\(", text, re.MULTILINE) is None
    return f'"{name}' not in text


def test_every_test_that_the_page_names_exists() -> None:
    rows = ROW.findall((ROOT / "docs/faults.md").read_text(encoding="utf-8"))
    assert len(rows) > 40
    for fault, cell in rows:
        found = TESTS.findall(cell)
        assert found or cell.startswith("none: "), fault
        for path, names in found:
            text = (ROOT / path).read_text(encoding="utf-8")
            for name in names.split("; "):
                assert not missing(name.partition(", also on")[0], text, path), f"{path} has no test {name!r}"
