"""What watching pages costs operators on the CPU (`--backend pages`), operator by operator, for two sizes of pages.

python bench/pages.py [--rounds N] [--results DIR]

Each operator runs plain, with `declared` and with `pages` by turns, in processes of their own, on one thread; a figure
is the least wall time of a call over all rounds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import least
from common import machine, markdown_table, write_results

MODES = {"declared": "declared 4KiB", "pages of 64 KiB": "pages 64KiB", "pages of 4 KiB": "pages 4KiB"}
"""Backend, and the page that the tool counts in."""


def worker(calls: int) -> None:
    """Runs every operator; prints the least nanoseconds of a call of each."""
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
    with torch.no_grad():
        least.print_least(operators, calls, time.perf_counter_ns)


def main() -> None:
    arguments = least.arguments(calls=30)
    if arguments.worker:
        worker(arguments.calls)
        return
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        modes: dict[str, list[str]] = {"plain": []}
        for mode, (backend, page) in ((mode, words.split()) for mode, words in MODES.items()):
            modes[mode] = f"-m leadline run -q --backend {backend} --tool working_set --tool-option".split()
            modes[mode] += [f"working_set.page={page}", "-o", str(Path(folder) / "pages.leadline")]
        times = least.in_turns(__file__, modes, arguments.rounds, arguments.calls, {})
    rows = []
    for name, before in times["plain"].items():
        rows.append([name, f"{before / 1e6:.2f}", *(f"{times[mode][name] / before:.2f}" for mode in MODES)])
    head = ["operator", "plain, ms", *(f"{mode}, times" for mode in MODES)]
    what = f"Least wall time of {arguments.calls} calls in {arguments.rounds} rounds, one thread.\n\n"
    write_results(arguments.results, "pages", facts, {"times_ns": times}, what + markdown_table(head, rows))


if __name__ == "__main__":
    main()
