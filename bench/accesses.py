"""What counting every memory access costs compiled CPU kernels (`--backend inductor-cpu`), kernel by kernel.

python bench/accesses.py [--rounds N] [--results DIR]

Each kernel runs plain and counted by turns, in processes of their own, on one thread; a figure is the least CPU time of
a call over all rounds. `at most` is what docs promise: ten times, but for gathers.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import least
from common import machine, markdown_table, write_results

MUST = 10.0
KERNELS = (
    "pointwise", "softmax", "layer_norm", "gelu_backward", "row_sums",
    "column_sums", "transpose", "bfloat16", "gather", "scatter",
)  # fmt: skip
GATHERS = ("gather", "scatter")


def worker(calls: int) -> None:
    """Runs every kernel; prints the least CPU nanoseconds of a call of each."""
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
    ready: dict[str, Any] = {}
    with torch.no_grad():
        for name, (function, arguments) in functions.items():
            compiled: Any = torch.compile(function)
            for _ in range(3):
                compiled(*arguments)
            ready[name] = partial(compiled, *arguments)
        least.print_least(ready, calls, time.process_time_ns)


def main() -> None:
    arguments = least.arguments(calls=40)
    if arguments.worker:
        worker(arguments.calls)
        return
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        counted = ["-m", "leadline", "run", "-q", "--tool", "kernel_frequency", "--backend", "inductor-cpu", "-o"]
        modes = {"plain": [], "counted": [*counted, str(Path(folder) / "counted.leadline")]}
        caches = {
            "XDG_CACHE_HOME": str(Path(folder) / "cache"),
            "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "plain"),
        }
        times = least.in_turns(__file__, modes, arguments.rounds, arguments.calls, caches)
    rows = []
    for name in KERNELS:
        plain, counting = times["plain"][name], times["counted"][name]
        bound = "" if name in GATHERS else f"{MUST:g}"
        rows.append([name, f"{plain / 1e6:.2f}", f"{counting / 1e6:.2f}", f"{counting / plain:.1f}", bound])
    head = ["kernel", "plain", "counted", "times", "at most"]
    what = f"Least CPU time of {arguments.calls} calls in {arguments.rounds} rounds, one thread, ms a call.\n\n"
    write_results(arguments.results, "accesses", facts, {"times_ns": times}, what + markdown_table(head, rows))


if __name__ == "__main__":
    main()
