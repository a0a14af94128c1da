"""Scores the verdict and the first three findings on the programs of examples/complaints_exam and their repaired twins.

    python bench/exam.py [--only NAME] [--results FOLDER]

A cause is named where the sentence, its facts or one of the first three findings has one of the planted lines, and one
of the words that say why. A twin is left alone where it has no warning that names a planted line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import leadline
from common import add_results_option, machine, markdown_table, write_results

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "complaints_exam"
_LIMIT_S = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_results_option(parser)
    parser.add_argument("--only", default="", help="one program")
    arguments = parser.parse_args()
    keys = json.loads((FOLDER / "keys.json").read_text(encoding="utf-8"))
    rows = [scored(name, key) for name, key in keys.items() if arguments.only in ("", name)]
    table = markdown_table(
        ("program", "named", "twin left alone", "first line of the verdict", "of the twin"),
        [
            (
                row["name"],
                "yes" if row["named"] else "**no**",
                "yes" if row["twin_alone"] else "**no**",
                row["sentence"],
                row["twin"],
            )
            for row in rows
        ],
    )
    named, alone = sum(row["named"] for row in rows), sum(row["twin_alone"] for row in rows)
    about = f"{named} of {len(rows)} named, {alone} twins left alone.\n\n"
    print(about)
    write_results(arguments.results, "exam", machine(), {"rows": rows}, about + table)
    return 0


def scored(name: str, key: dict[str, Any]) -> dict[str, Any]:
    problem, twin = run(name, "0"), run(name, "1")
    said, _ = told(problem)
    _, warned = told(twin)
    lines = [f"{name}.py:{line}" for line in key["lines"]] + [
        f"{name}.py:{a} and {b}" for a in key["lines"] for b in key["lines"]
    ]
    named = any(line in text for line in lines for text in said) and any(
        word in text for word in key["words"] for text in said
    )
    row = {
        "name": name,
        "named": named,
        "twin_alone": not any(f"{name}.py:{line}" in text for line in key["lines"] for text in warned),
        "sentence": problem.verdict.sentence if problem else "not measured",
        "twin": twin.verdict.sentence if twin else "not measured",
        "said": said,
    }
    print(json.dumps(row, indent=1), flush=True)
    return row


def run(name: str, fix: str) -> leadline.Profile | None:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / f"{name}.leadline"
        command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(output), str(FOLDER / f"{name}.py")]
        environment = {**os.environ, "FIX": fix, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, capture_output=True, timeout=_LIMIT_S, check=False)
        if not output.exists():
            return None
        profile: leadline.Profile = leadline.open(output)
        _ = profile.verdict  # reads what is in the file
        return profile


def told(profile: leadline.Profile | None) -> tuple[list[str], list[str]]:
    """What is said first, and the warnings among the first three findings."""
    if profile is None:
        return [], []
    verdict, found = profile.verdict, list(profile.findings())[:3]
    texts = [verdict.sentence, *verdict.because]
    of_findings = [
        (one, " ".join([one.title, *one.evidence, one.remedy, *(f"{line.short}:{line.line}" for line in one.lines)]))
        for one in found
    ]
    return texts + [text for _, text in of_findings], [
        text for one, text in of_findings if one.severity.value == "warning"
    ]


if __name__ == "__main__":
    sys.exit(main())
