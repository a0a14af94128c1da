#!/usr/bin/env python3
"""A ratchet on two habits of tests: sleeping, and reaching for private names.

    python tools/check_tests.py            check tests/ against tools/test_habits.json
    python tools/check_tests.py --record   accept fewer (never more)

A sleep hopes that something has happened by then; wait for the thing itself. A private name ties a test to how
something is done; ask what a user would notice. Both are counted by folder of tests, and no folder may have more than
is recorded.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "test_habits.json"
SLEEP = re.compile(r"\bsleep\(")  # also of the programs that tests write


def private_names(source: str) -> Iterator[str]:
    """Names with a leading underscore that are imported from our packages, or put in the place of others."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "leadline":
            yield from (one.name for one in node.names if _is_private(one.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            texts = [one.value for one in node.args[:2] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from (text for text in texts if _is_private(text.rpartition(".")[2]))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def counted(tests: Path) -> dict[str, dict[str, int]]:
    """Sleeps and private names by folder of tests."""
    found: dict[str, Counter[str]] = {"sleeps": Counter(), "private names": Counter()}
    for path in sorted(tests.rglob("*.py")):
        folder = path.relative_to(tests).parts[0]
        source = path.read_text(encoding="utf-8")
        found["sleeps"][folder] += len(SLEEP.findall(source))
        found["private names"][folder] += sum(1 for _ in private_names(source))
    return {habit: {folder: count for folder, count in folders.items() if count} for habit, folders in found.items()}


def problems(now: dict[str, dict[str, int]], recorded: dict[str, dict[str, int]]) -> list[str]:
    """A sentence for each folder that has more than is recorded."""
    return [
        f"tests/{folder} has {count} {habit}, more than the {recorded.get(habit, {}).get(folder, 0)} of {RECORD.name}."
        for habit, folders in now.items()
        for folder, count in folders.items()
        if count > recorded.get(habit, {}).get(folder, 0)
    ]


def main(words: list[str]) -> int:
    now = counted(ROOT / "tests")
    found = problems(now, json.loads(RECORD.read_text(encoding="utf-8")))
    print("\n".join(found) or "tests: no more sleeps or private names than recorded", file=sys.stderr)
    if "--record" in words and not found:
        RECORD.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
