"""What watching pages costs operators on the CPU (`--backend pages`), operator by operator, for two sizes of pages.

python bench/pages.py [--rounds N] [--results DIR]

Each operator runs plain, with `declared` and with `pages` by turns, in processes of their own, on one thread; a figure
is the least wall time of a call over all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import add_results_option, machine, markdown_table, write_results

MODES = {"plain": "", "declared": "declared", "pages of 64 KiB": "pages 64KiB", "pages of 4 KiB": "pages 4KiB"}


def worker(calls: int) -> None:
    """Runs every operator; prints the least nanoseconds of a call of each, as JSON."""
    import time

    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    square, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
    images, weights = torch.randn(8, 32, 64, 64), torch.randn(32, 32, 3, 3)
    table, index = torch.randn(200_000, 64), torch.randint(0, 200_000, (2_000,))
    operators: dict[str, Callable[[], Any]] = {
        "mm": lambda: square @ other,
        "conv2d": lambda: torch.conv2d(images, weights),
        "softmax": lambda: torch.softmax(square, -1),
        "gelu": lambda: torch.nn.functional.gelu(square),
        "add_": lambda: square.add_(0.0),
        "sum": lambda: square.sum(),
        "index_select": lambda: table.index_select(0, index),
    }
    found = {}
    with torch.no_grad():
        for name, call in operators.items():
            times = []
            for _ in range(calls):
                before = time.perf_counter_ns()
                call()
                times.append(time.perf_counter_ns() - before)
            found[name] = min(times)
    print("TIMES", json.dumps(found))


def once(mode: str, folder: Path, calls: int) -> dict[str, int]:
    """One process of a mode."""
    words = [sys.executable]
    if mode:
        backend, _, page = mode.partition(" ")
        words += ["-m", "leadline", "run", "-q", "--backend", backend, "--tool", "working_set"]
        words += ["--tool-option", f"working_set.page={page or '4KiB'}", "-o", str(folder / "pages.leadline")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [*words, __file__, "--worker", "--calls", str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.split("TIMES", 1)[1].splitlines()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.calls)
        return
    facts = machine()
    times: dict[str, dict[str, int]] = {mode: {} for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for mode, words in MODES.items():
                for name, value in once(words, Path(folder), arguments.calls).items():
                    times[mode][name] = min(value, times[mode].get(name, value))
    plain = times["plain"]
    rows = []
    for name, before in plain.items():
        others = [f"{times[mode][name] / before:.2f}" for mode in MODES if mode != "plain"]
        rows.append([name, f"{before / 1e6:.2f}", *others])
    head = ["operator", "plain, ms", *(f"{mode}, times" for mode in MODES if mode != "plain")]
    what = f"Least wall time of {arguments.calls} calls in {arguments.rounds} rounds, one thread.\n\n"
    write_results(arguments.results, "pages", facts, {"times_ns": times}, what + markdown_table(head, rows))


if __name__ == "__main__":
    main()
