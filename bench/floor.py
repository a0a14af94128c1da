"""What torch charges for being observed at all, beside what Leadline and torch.profiler add inside the loop.

    python bench/floor.py [--workload micro|micro_deep|gpt|gpt_thread] [--rounds 15] [--results FOLDER]

One process. A round measures every mode once, so that what the machine does to all of them cancels out: the micro
workload by CPU time of the thread, the best of 12 chunks of 5 steps; the GPT by wall time, the best of 4 steps. Medians
and ranges over rounds. Needs g++ for callbacks that do nothing (floor.cpp).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import leadline
from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.capture.config import USUAL_SAMPLE_HZ, USUAL_WAIT_HZ
from workloads import gpt, gpt_thread, micro, micro_deep

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Workload:
    """What is run and how it is timed: `chunks` of `steps`, of which the fastest counts."""

    make_step: Callable[[], Callable[[], None]]
    clock: Callable[[], float]
    chunks: int
    steps: int

    def step_us(self, step: Callable[[], None]) -> float:
        """Microseconds per step, best chunk."""
        best = float("inf")
        for _ in range(self.chunks):
            begin = self.clock()
            for _ in range(self.steps):
                step()
            best = min(best, self.clock() - begin)
        return best / self.steps * 1e6


WORKLOADS = {
    "micro": Workload(micro.make_step, time.thread_time, chunks=12, steps=5),
    "micro_deep": Workload(micro_deep.make_step, time.thread_time, chunks=12, steps=5),
    "gpt": Workload(gpt.make_step, time.perf_counter, chunks=4, steps=1),
    "gpt_thread": Workload(gpt_thread.make_step, time.thread_time, chunks=2, steps=1),
}


def build_empty_callbacks(folder: Path) -> ctypes.CDLL:
    """The library of callbacks that do nothing, made in the folder."""
    built = folder / "floor.so"
    command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(built), str(HERE / "floor.cpp"), "-ldl"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


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
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="micro")
    parser.add_argument("--rounds", type=int, default=15)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        library = build_empty_callbacks(Path(folder))
        modes: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "unprofiled": contextlib.nullcontext,
            "callbacks that do nothing": lambda: empty_callbacks(library),
            "leadline without memory": lambda: leadline.profile(Path(folder) / "x.leadline", memory=False, quiet=True),
            "leadline": lambda: leadline.profile(Path(folder) / "x.leadline", quiet=True),
            "torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        }
        workload = WORKLOADS[arguments.workload]
        if workload.steps == 1:  # as `leadline run` measures; samples fall between the best short chunks of the others
            modes["leadline with CPU samples"] = lambda: leadline.profile(
                Path(folder) / "x.leadline", cpu_sample=USUAL_SAMPLE_HZ, wait=USUAL_WAIT_HZ, quiet=True
            )
        step = workload.make_step()
        workload.step_us(step)
        runs: dict[str, list[float]] = {name: [] for name in modes}
        for number in range(arguments.rounds):
            for name in random.Random(number).sample(sorted(modes), len(modes)):
                with modes[name]():
                    step()  # what ended before it leaves memory to give back
                    runs[name].append(workload.step_us(step))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    added = {
        name: Spread.of(value - base for value, base in zip(values, runs["unprofiled"], strict=True))
        for name, values in runs.items()
    }
    ratio = {
        name: Spread.of(value / base for value, base in zip(values, runs["unprofiled"], strict=True))
        for name, values in runs.items()
    }
    theirs = added["torch.profiler"].median
    rows = [
        [
            name,
            Spread.of(values).text(0),
            added[name].text(0),
            ratio[name].text(3),
            f"{added[name].median / theirs:.2f}",
        ]
        for name, values in runs.items()
    ]
    table = markdown_table(["", "step, µs", "added, µs", "ratio to unprofiled", "added, of torch.profiler's"], rows)
    name = "floor" if arguments.workload == "micro" else f"floor-{arguments.workload}"
    chosen = f"--workload {arguments.workload} --rounds {arguments.rounds}"
    write_results(arguments.results, name, facts, {"step_us": runs}, table, script="bench/floor.py", arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
