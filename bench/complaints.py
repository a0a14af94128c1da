"""How many of the problems in examples/complaints* `leadline analyze` names, and whether their twins are left alone.

    python bench/complaints.py [--set first|again|third] [--results FOLDER]

A problem is named where its rule (one of them, where several would say it) stands among the first three findings with
the planted line; a twin is left alone where it lacks those rules. The rules were not changed between the first line of
these programs and their first score, which is the one in bench/results; a later run says how well the programs are
known by then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import leadline
from common import add_results_option, machine, markdown_table, write_results
from leadline.analysis.analyze import analyze

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SETS = {"first": "complaints", "again": "complaints_again", "third": "complaints_third"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_results_option(parser)
    parser.add_argument("--set", choices=SETS, default="first", help="which programs")
    arguments = parser.parse_args()
    name = SETS[arguments.set]
    folder = EXAMPLES / name
    facts = machine()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=folder).stdout
    told = json.loads((folder / "problems.json").read_text(encoding="utf-8"))
    rows = [scored(folder / program, about) for program, about in sorted(told.items())]
    named = sum(row["named"] for row in rows)
    alone = sum(row["twin_alone"] for row in rows)
    both = sum(row["named"] and row["twin_alone"] for row in rows)
    table = markdown_table(
        ("program", "complaint", "rule expected", "named", "twin left alone", "said instead, or besides"),
        [
            (
                row["name"], row["complaint"], row["rule"], "yes" if row["named"] else "**no**",
                "yes" if row["twin_alone"] else "**no**", ", ".join(row["first"]) or "nothing",
            )
            for row in rows
        ],
    )  # fmt: skip
    about = (
        f"{named} of {len(rows)} named on their line, {alone} twins left alone, both for {both}. "
        f"Rules of commit {commit.strip()}.\n\n"
    )
    write_results(arguments.results, name, facts, {"rows": rows}, about + table)
    return 0


def scored(folder: Path, about: dict[str, str]) -> dict[str, Any]:
    expected = set(about["rule"].split(", "))
    lines = (folder / "problem.py").read_text(encoding="utf-8").splitlines()
    planted = next(number for number, text in enumerate(lines, start=1) if text.endswith("# problem"))
    first = findings(folder / "problem.py")[:3]
    twin = {rule for rule, _ in findings(folder / "fixed.py")}
    return {
        "name": folder.name,
        **about,
        "named": any(rule in expected and planted in where for rule, where in first),
        "twin_alone": not expected & twin,
        "first": [f"{rule} at {', '.join(map(str, where)) or '-'}" for rule, where in first],
        "planted": planted,
    }


def findings(program: Path) -> list[tuple[str, list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "p.leadline"
        command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(output), str(program)]
        subprocess.run(command, check=True, capture_output=True)
        return [(one.rule, [line.line for line in one.lines]) for one in analyze(leadline.open(output))]


if __name__ == "__main__":
    sys.exit(main())
