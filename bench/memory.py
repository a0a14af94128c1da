"""Whether memory and file stay bounded: resident memory added and file size after 100 and after 10,000 steps.

    python bench/memory.py [--steps 10000] [--repeat 3] [--results FOLDER]

Added memory is the growth of the profiled program between step 100 and the last step, less the growth of the same
program unprofiled. File sizes compare a run of 100 steps with a long one. Also: bytes held per distinct call path.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results
from run_worker import run_worker

WORKLOADS = ("micro", "gpt_tiny")
SHORT = 100


def growth(run: dict[str, Any]) -> int:
    return int(run["rss_at_end"]) - int(run["rss_at_100"])


def path_cost(file: Path) -> dict[str, float]:
    """Distinct call paths, and bytes per path in memory and on disk."""
    import leadline

    profile = leadline.open(file)
    paths = len(profile.table("nodes")["parent"])
    return {
        "paths": paths,
        "held_bytes_per_path": profile.meta["cost"]["held_bytes"] / paths,
        "file_bytes_per_path": file.stat().st_size / paths,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure growth of memory and file.")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    data: dict[str, Any] = {"short_steps": SHORT, "long_steps": arguments.steps, "workloads": {}}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for workload in WORKLOADS:
            added, short_files, long_files = [], [], []
            for number in range(arguments.repeat):
                unprofiled = run_worker(workload, "none", arguments.steps, directory)
                profiled = run_worker(workload, "leadline", arguments.steps, directory)
                short = run_worker(workload, "leadline", SHORT, directory)
                added.append(growth(profiled) - growth(unprofiled))
                short_files.append(short["file_bytes"])
                long_files.append(profiled["file_bytes"])
                print(f"{workload}, repetition {number + 1} of {arguments.repeat}", flush=True)
            cost = path_cost(directory / f"{workload}-leadline-{arguments.steps}.leadline")
            data["workloads"][workload] = {
                "added_bytes": added,
                "short_file_bytes": short_files,
                "long_file_bytes": long_files,
                **cost,
            }
            short_file, long_file = Spread.of(short_files).median, Spread.of(long_files).median
            rows.append(
                [
                    workload,
                    megabytes(Spread.of(added).median) + f" ({megabytes(min(added))} to {megabytes(max(added))})",
                    f"{short_file / 1e3:.1f} kB",
                    f"{long_file / 1e3:.1f} kB ({100 * (long_file / short_file - 1):+.1f} %)",
                    f"{cost['paths']:.0f}",
                    f"{cost['held_bytes_per_path']:.0f}",
                    f"{cost['file_bytes_per_path']:.1f}",
                ]
            )
    head = [
        "workload",
        f"memory added from step {SHORT} to {arguments.steps}",
        f"file, {SHORT} steps",
        f"file, {arguments.steps} steps",
        "distinct paths",
        "bytes held per path",
        "file bytes per path",
    ]
    write_results(arguments.results, "memory", facts, data, markdown_table(head, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
