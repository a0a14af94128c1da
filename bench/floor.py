"""What torch charges for being observed at all, beside what Leadline and torch.profiler add inside the loop.

    python bench/floor.py [--rounds 15] [--results FOLDER]

One process, the micro workload, CPU time of the thread. A round measures every mode once, each as the best of 12 chunks
of 5 steps, so that a busy machine disturbs little; medians and ranges over rounds. Needs g++ for callbacks that do
nothing (floor.cpp).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

import leadline
from common import Spread, add_results_option, machine, markdown_table, write_results
from workloads.micro import make_step

CHUNKS, STEPS = 12, 5
HERE = Path(__file__).resolve().parent


def step_us(step: Callable[[], None]) -> float:
    """Microseconds of thread CPU time per step, best chunk."""
    best = float("inf")
    for _ in range(CHUNKS):
        begin = time.thread_time()
        for _ in range(STEPS):
            step()
        best = min(best, time.thread_time() - begin)
    return best / STEPS * 1e6


@contextlib.contextmanager
def empty_callbacks(library: ctypes.CDLL) -> Iterator[None]:
    libtorch = str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so").encode()
    if library.floor_attach(libtorch):
        raise SystemExit("This torch does not export its callbacks, so the floor cannot be measured.")
    try:
        yield
    finally:
        library.floor_detach(libtorch)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the floor under every operator profiler.")
    parser.add_argument("--rounds", type=int, default=15)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "floor.so"
        subprocess.run(
            ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", "-o", built, HERE / "floor.cpp", "-ldl"], check=True
        )
        library = ctypes.CDLL(str(built))
        modes: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "unprofiled": contextlib.nullcontext,
            "callbacks that do nothing": lambda: empty_callbacks(library),
            "leadline without memory": lambda: leadline.profile(Path(folder) / "x.leadline", memory=False, quiet=True),
            "leadline": lambda: leadline.profile(Path(folder) / "x.leadline", quiet=True),
            "torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        }
        step = make_step()
        step_us(step)
        runs: dict[str, list[float]] = {name: [] for name in modes}
        for number in range(arguments.rounds):
            for name, mode in modes.items():
                with mode():
                    runs[name].append(step_us(step))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    added = {
        name: Spread.of(value - base for value, base in zip(values, runs["unprofiled"], strict=True))
        for name, values in runs.items()
    }
    theirs = added["torch.profiler"].median
    rows = [
        [name, Spread.of(values).text(0), added[name].text(0), f"{added[name].median / theirs:.2f}"]
        for name, values in runs.items()
    ]
    table = markdown_table(["", "step, µs", "added, µs", "of torch.profiler's"], rows)
    write_results(arguments.results, "floor", facts, {"step_us": runs}, table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
