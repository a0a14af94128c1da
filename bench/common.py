"""What the benchmarks share: the machine in words, medians with spread, results as JSON and Markdown.

Constraint: no heavy import, so that a script that starts measured programs stays small itself.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Spread:
    """The median of some values and their range, in the values' own unit."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])

    def text(self, digits: int = 2) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def machine() -> dict[str, Any]:
    """The machine and the versions that the numbers belong to."""
    versions = {}
    for package in ("leadline", "torch", "numpy"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
        **versions,
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def machine_text(facts: dict[str, Any]) -> str:
    """One line for the head of a result."""
    memory = facts["memory_bytes"] / 2**30
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {memory:.0f} GiB, Linux {facts['kernel']}, Python {facts['python']}, "
        f"torch {facts['torch']}, leadline {facts['leadline']}, load {facts['load_average']:.1f} at the start"
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def add_results_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results (default: bench/results)")


def write_results(
    folder: Path,
    name: str,
    facts: dict[str, Any],
    data: dict[str, Any],
    report: str,
    *,
    title: str | None = None,
    script: str | None = None,
    arguments: str = "",
) -> None:
    """Write NAME.json and NAME.md and print the latter.

    `facts`: machine() taken before measuring. `title` is NAME and `script` is bench/NAME.py unless given; `arguments`:
    those of the script that this result needs.
    """
    script = script or f"bench/{name}.py"
    folder.mkdir(parents=True, exist_ok=True)
    command = f"python {script} {arguments}".rstrip()
    text = f"# {title or name}\n\nMade by `{command}`.\n{machine_text(facts)}.\n\n{report}"
    document = {"script": script, "machine": facts, **data}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def megabytes(count: float) -> str:
    """Bytes as decimal megabytes."""
    return f"{count / 1e6:.2f} MB"
