#!/usr/bin/env python3
"""Write docs/tested.md: what was run on which CPython and framework, from the records of the runs themselves.

    python tools/tested.py            write the page
    python tools/tested.py --check    exit with 1 where the page is not what the records say

Records are bench/results/tested/*.json; where LEADLINE_RECORD_RUN names that folder, runs write them
(tests/record_run.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from test_pythons import ROOT

RECORDS = ROOT / "bench/results/tested"
PAGE = ROOT / "docs/tested.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
COLUMNS = (
    ("plain", "", ""),
    ("torch 2.4", "torch", "2.4"),
    ("torch 2.6", "torch", "2.6"),
    ("torch 2.13", "torch", "2.13"),
    ("torch 2.14", "torch", "2.14"),
    ("JAX 0.8", "jax", "0.8"),
    ("JAX 0.10", "jax", "0.10"),
    ("JAX 0.12", "jax", "0.12"),
    ("TF 2.21", "tensorflow", "2.21"),
)
NAMES = {"torch": "torch", "jax": "JAX", "tensorflow": "TensorFlow"}
OF_ONE_FRAMEWORK = {"jax": ("jax",), "tensorflow": ("tensorflow",)}
"""For these, the folder of tests that is theirs stands for the whole suite."""
WHOLE, PART, SMOKE, NOT_TRIED = "whole", "part", "smoke", "–"


@dataclass(frozen=True)
class Record:
    """One file: a combination, and what ran on it."""

    facts: dict[str, str]
    folders: dict[str, dict[str, Any]]
    smoke: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Record:
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = {name: value for name, value in content.items() if isinstance(value, str)}
        return cls(facts, content.get("folders", {}), content.get("smoke", {}))

    def has(self, framework: str, version: str) -> bool:
        """Whether this was run with a release of that series; '' asks for no framework at all."""
        if not framework:
            return not any(self.facts.get(name) for name in NAMES)
        return self.facts.get(framework, "").split(".")[:2] == version.split(".")

    def extent(self, every: set[str], framework: str) -> str:
        """How much of the suite ran; for a framework that has a folder of its own, whether that did."""
        own = OF_ONE_FRAMEWORK.get(framework)
        ran = {name for name, one in self.folders.items() if one["passed"] or one["failed"]}
        if own:
            return WHOLE if ran.issuperset(own) else NOT_TRIED
        if self.folders.keys() >= every:
            return WHOLE
        return PART if ran else SMOKE if self.smoke else NOT_TRIED

    @property
    def frameworks(self) -> str:
        return ", ".join(f"{NAMES[name]} {self.facts[name]}" for name in NAMES if self.facts.get(name)) or "none"

    @property
    def failed(self) -> list[str]:
        return [test for one in self.folders.values() for test in one["failed"]]

    @property
    def load(self) -> str:
        """The highest load of the machine while these ran: above its number of cores, tests of time fail."""
        known = [float(one["load"]) for one in self.folders.values() if "load" in one]
        return f"{max(known):.0f}" if known else "?"

    @property
    def date(self) -> str:
        return max([str(one["date"]) for one in self.folders.values()] + [self.smoke.get("date", "")])


def test_folders() -> set[str]:
    """Those in which a test is."""
    return {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}


def grid(records: list[Record], every: set[str]) -> list[str]:
    """CPython by framework."""
    order = (NOT_TRIED, SMOKE, PART, WHOLE)
    lines = ["| CPython | " + " | ".join(name for name, _, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for python in PYTHONS:
        cells = []
        for _, framework, version in COLUMNS:
            found = [one for one in records if one.facts["python"] == python and one.has(framework, version)]
            extents = [one.extent(every, framework) for one in found]
            best = max(extents, key=order.index, default=NOT_TRIED)
            failed = [one for one, extent in zip(found, extents, strict=True) if extent == best and one.failed]
            cells.append(f"{best}, failures" if failed and best in (PART, WHOLE) else best)
        lines.append(f"| {python} | " + " | ".join(cells) + " |")
    return lines


def details(records: list[Record], every: set[str]) -> list[str]:
    """One row a record."""
    lines = [
        "| CPython | C library | frameworks | ran | passed | failed | skipped | load | last run |",
        "|---" * 9 + "|",
    ]
    for one in records:
        ran = one.extent(every, "")
        if ran == PART:
            ran = f"{len(one.folders)} folders"
        passed, skipped = (sum(each[what] for each in one.folders.values()) for what in ("passed", "skipped"))
        system = one.facts["libc"] + ("" if one.facts["machine"] == "x86_64" else f", {one.facts['machine']}")
        row = (one.facts["release"], system, one.frameworks, ran, passed, len(one.failed), skipped, one.load, one.date)
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return lines


def page() -> str:
    """The whole text."""
    every = test_folders()
    records = [Record.read(path) for path in sorted(RECORDS.glob("*.json"))]
    records.sort(key=lambda one: (int(one.facts["python"].split(".")[1]), one.facts["torch"], one.facts["jax"]))
    lines = [
        "# What was tested where",
        "",
        "`python tools/tested.py` writes this page from what the runs themselves recorded.",
        "",
        f"- **{WHOLE}**: the whole suite; tests that do not apply skip themselves (JAX, TensorFlow: their folder);",
        f"- **{PART}**: some folders, named below;",
        f"- **{SMOKE}**: the self-tests of `leadline doctor`, and a program that is measured and reported;",
        f"- **{NOT_TRIED}**: not tried.",
        "",
        *grid(records, every),
        "",
        "## The runs",
        "",
        "Load: processes that wanted a core (two cores). Tests of time fail where it is far above the number of cores.",
        "",
        *details(records, every),
    ]
    lines += ["", "Folders of `tests/` that ran where only a part did:", ""]
    for one in records:
        if one.extent(every, "") == PART:
            told = f"CPython {one.facts['python']}, {one.frameworks}: {', '.join(one.folders)}."
            lines += textwrap.wrap(told, 118, initial_indent="- ", subsequent_indent="  ")
    failed = [(one, test) for one in records for test in one.failed]
    if failed:
        lines += ["", "## What failed", ""]
        by_file: dict[str, list[str]] = {}
        for one, test in failed:
            file, _, name = test.partition("::")
            names = by_file.setdefault(f"- {one.facts['release']}, `{file}`:", [])
            names += [bare for bare in [f"`{name.partition('[')[0]}`"] if bare not in names]
        for where, names in by_file.items():
            lines += textwrap.wrap(f"{where} {', '.join(names)}", 118, subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write docs/tested.md from the records of test runs.")
    parser.add_argument("--check", action="store_true", help="exit with 1 where the page is not what the records say")
    text = page()
    if parser.parse_args(argv).check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/tested.md is not what bench/results/tested says; run `python tools/tested.py`.")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
