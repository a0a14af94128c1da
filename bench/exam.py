"""Scores the verdict and the first three findings on the programs of examples/complaints_exam and their repaired twins.

    python bench/exam.py [--set exam|blind|blind2|...|blind11] [--only NAME] [--results FOLDER]

A cause is named where the sentence, its facts or one of the first three findings has one of the planted lines, and one
of the words that say why. A twin is left alone where it has no warning that names a planted line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import leadline
from common import add_results_option, machine, markdown_table, write_results

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SETS = {
    "exam": "complaints_exam",
    "blind": "complaints_blind",
    "blind2": "complaints_blind2",
    "blind3": "complaints_blind3",
    "blind4": "complaints_blind4",
    "blind5": "complaints_blind5",
    "blind6": "complaints_blind6",
    "blind7": "complaints_blind7",
    "blind8": "complaints_blind8",
    "blind9": "complaints_blind9",
    "blind10": "complaints_blind10",
    "blind11": "complaints_blind11",
}
"""Folders of programs. `blind`: by somebody who had not read the rules; the score in bench/results is the first."""
_LIMIT_S = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_results_option(parser)
    parser.add_argument("--only", default="", help="one program")
    parser.add_argument("--set", choices=SETS, default="exam", help="which programs (default: %(default)s)")
    parser.add_argument("--folder", default="", help="another folder of programs, with keys.json")
    arguments = parser.parse_args()
    folder = Path(arguments.folder) if arguments.folder else EXAMPLES / SETS[arguments.set]
    keys = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
    rows = [scored(folder, name, key) for name, key in keys.items() if arguments.only in ("", name)]
    table = markdown_table(
        ("program", "named", "twin left alone", "first line of the verdict", "of the twin"),
        [
            (
                row["name"],
                f"healthy, {row['warnings']} warnings" if row["healthy"] else "yes" if row["named"] else "**no**",
                "" if not row["twin"] else "yes" if row["twin_alone"] else "**no**",
                row["sentence"],
                row["twin"],
            )
            for row in rows
        ],
    )
    ill = [row for row in rows if not row["healthy"]]
    about = f"{sum(row['named'] for row in ill)} of {len(ill)} named"
    if twins := [row for row in ill if row["twin"]]:
        about += f", {sum(row['twin_alone'] for row in twins)} of {len(twins)} twins left alone"
    about += ".\n\n"
    print(about)
    write_results(
        arguments.results,
        "exam" if arguments.set == "exam" else f"exam_{arguments.set}",
        machine(),
        {"rows": rows},
        about + table,
    )
    return 0


def scored(folder: Path, name: str, key: dict[str, Any]) -> dict[str, Any]:
    problem = run(folder, name, "0")
    twin = run(folder, name, "1") if "healthy" not in key else None
    said, warned_here = told(problem)
    _, warned = told(twin)
    row = {
        "name": name,
        "healthy": bool(key.get("healthy")),
        "named": named(name, key, said),
        "twin_alone": not lines_of(name, warned) & set(key["lines"]),
        "warnings": len(warned_here),
        "sentence": problem.verdict.sentence if problem else "not measured",
        "twin": twin.verdict.sentence if twin else "",
        "said": said,
    }
    print(json.dumps(row, indent=1), flush=True)
    return row


def lines_of(name: str, texts: list[str]) -> set[int]:
    """Lines of the program that are named, as `train.py:41` or `train.py:41 and 43`."""
    pattern = re.compile(re.escape(name) + r"\.py:(\d+)(?: and (\d+))?")
    return {int(one) for text in texts for found in pattern.finditer(text) for one in found.groups() if one}


def named(name: str, key: dict[str, Any], said: list[str]) -> bool:
    """Whether one of the lines and one of the words is among what was said."""
    text = " ".join(said).lower()
    return bool(lines_of(name, said) & set(key["lines"])) and any(word.lower() in text for word in key["words"])


def run(programs: Path, name: str, fix: str) -> leadline.Profile | None:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / f"{name}.leadline"
        command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(output), str(programs / f"{name}.py")]
        environment = {**os.environ, "FIX": fix, "OMP_NUM_THREADS": "1"}
        with contextlib.suppress(subprocess.TimeoutExpired):
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
