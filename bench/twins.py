"""Six models in PyTorch and in JAX, measured by Leadline and compared by `leadline.diff`: operators, time, by class.

    python bench/twins.py [--only mlp --only gnn] [--steps 60]

Each program runs in a process of its own (`twin.py`), on one core. What a framework compiles away shows as operators
that are not there; where its time went shows by class of operator, by the same names for both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import leadline
from common import add_results_option, machine, markdown_table, write_results
from leadline.compare.comparison import Diff
from workloads.twins import MODELS

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("torch", "jax")
MOST_CLASSES = 3


def measured(model: str, framework: str, steps: int, folder: Path) -> Path:
    """The profile of one program."""
    file = folder / f"{model}-{framework}.leadline"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", str(file)]
    command += [str(HERE / "twin.py"), framework, model, "--steps", str(steps)]
    subprocess.run(command, env={**environment, "OMP_NUM_THREADS": "1"}, check=True)
    return file


def classes(found: Diff, side: int) -> str:
    """The classes with most time on one side, in ms of a step."""
    spent = {name: (a, b)[side] / 1e6 for name, a, b in found.groups.get("operator class", ())}
    most = sorted(spent, key=lambda name: -spent[name])[:MOST_CLASSES]
    return ", ".join(f"{name} {spent[name]:.2f}" for name in most if spent[name] > 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="Compare six models in PyTorch and JAX.")
    parser.add_argument("--only", action="append", choices=MODELS, help="only this model; repeatable")
    parser.add_argument("--steps", type=int, default=60)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    rows, data = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.only or MODELS:
            files = [measured(model, framework, arguments.steps, Path(folder)) for framework in FRAMEWORKS]
            found = leadline.diff(files[0], files[1])
            step = (found.step.a / 1e6, found.step.b / 1e6)
            rows.append(
                [
                    model,
                    f"{step[0]:.2f}",
                    f"{found.calls[0]:.0f}",
                    classes(found, 0),
                    f"{step[1]:.2f}",
                    f"{found.calls[1]:.0f}",
                    classes(found, 1),
                ]
            )
            data[model] = {
                "step_ms": step,
                "operators": found.calls,
                "classes": [list(row) for row in found.groups.get("operator class", ())],
            }
            print(*rows[-1], sep=" | ", flush=True)
    most = "most time, ms a step"
    heads = ["model", "PyTorch, ms", "operators", most, "JAX, ms", "operations", most]
    chosen = f"--steps {arguments.steps}"
    write_results(arguments.results, "twins", facts, data, markdown_table(heads, rows), arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
