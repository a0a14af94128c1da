"""What counting every memory access costs compiled CPU kernels (`--backend inductor-cpu`), kernel by kernel.

python bench/accesses.py [--rounds N] [--results DIR]

Each kernel runs plain and counted by turns, in processes of their own, on one thread; a figure is the least CPU time of
a call over all rounds. `at most` is what docs promise: ten times, but for gathers.
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

from common import add_results_option, machine, markdown_table, write_results

MUST = 10.0
KERNELS = (
    "pointwise", "softmax", "layer_norm", "gelu_backward", "row_sums",
    "column_sums", "transpose", "bfloat16", "gather", "scatter",
)  # fmt: skip
GATHERS = ("gather", "scatter")


def worker(calls: int) -> None:
    """Runs every kernel; prints the least CPU nanoseconds of a call of each, as JSON."""
    import time

    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    n = 1 << 20
    a, b, square = torch.randn(n), torch.randn(n), torch.randn(1024, 1024)
    half, table = torch.randn(n).bfloat16(), torch.randn(50_000, 32)
    index = torch.randint(0, 50_000, (20_000,))
    functions: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "pointwise": (lambda x, y: torch.relu(x * 2 + y), (a, b)),
        "softmax": (lambda x: torch.softmax(x, -1), (square,)),
        "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, (1024,)), (square,)),
        "gelu_backward": (lambda g, x: torch.ops.aten.gelu_backward(g, x), (a, b)),
        "row_sums": (lambda x: x.sum(-1), (square,)),
        "column_sums": (lambda x: x.sum(0), (square,)),
        "transpose": (lambda x: x.t().contiguous() + 1, (square,)),
        "bfloat16": (lambda x: x * x + 1, (half,)),
        "gather": (lambda t, i: t[i] * 2, (table, index)),
        "scatter": (lambda t, i, v: t.index_add(0, i, v), (table, index, torch.ones(20_000, 32))),
    }
    found = {}
    with torch.no_grad():
        for name, (function, arguments) in functions.items():
            compiled: Any = torch.compile(function)
            for _ in range(3):
                compiled(*arguments)
            times = []
            for _ in range(calls):
                before = time.process_time_ns()
                compiled(*arguments)
                times.append(time.process_time_ns() - before)
            found[name] = min(times)
    print("TIMES", json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.calls)
        return
    facts = machine()
    times: dict[str, dict[str, int]] = {"plain": {}, "counted": {}}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for mode, best in times.items():
                for name, value in once(mode, Path(folder), arguments.calls).items():
                    best[name] = min(value, best.get(name, value))
    rows = []
    for name in KERNELS:
        plain, counted = times["plain"][name], times["counted"][name]
        bound = "" if name in GATHERS else f"{MUST:g}"
        rows.append([name, f"{plain / 1e6:.2f}", f"{counted / 1e6:.2f}", f"{counted / plain:.1f}", bound])
    head = ["kernel", "plain", "counted", "times", "at most"]
    what = f"Least CPU time of {arguments.calls} calls in {arguments.rounds} rounds, one thread, ms a call.\n\n"
    write_results(arguments.results, "accesses", facts, {"times_ns": times}, what + markdown_table(head, rows))


def once(mode: str, folder: Path, calls: int) -> dict[str, int]:
    """One process of a mode."""
    words = [sys.executable]
    if mode == "counted":
        output = str(folder / "counted.leadline")
        words += [
            "-m",
            "leadline",
            "run",
            "-q",
            "--tool",
            "kernel_frequency",
            "--backend",
            "inductor-cpu",
            "-o",
            output,
        ]
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "plain"),
        "PYTHONPATH": str(Path(__file__).parent),
    }
    command = [*words, __file__, "--worker", "--calls", str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.split("TIMES", 1)[1].splitlines()[0])
    return found


if __name__ == "__main__":
    main()
