"""Unprofiled, empty callbacks, Leadline and torch.profiler take turns in one process: modes_in_turns.py WORKLOAD SEED.

Prints one JSON object: microseconds of CPU time a step by mode (the fastest chunk of a turn, the median of the turns)
and `stated`, what the file says of its own cost. A step of `frees` frees FREES tensors outside of any operator. Uses of
Leadline what its earliest commits have, since before_after.py runs it with older ones.
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import leadline
from floor import WORKLOADS, build_empty_callbacks, empty_callbacks

TURNS = 3
FREES = 1000
CHUNKS = 12


def frees_us() -> float:
    """Microseconds of this thread for freeing FREES tensors outside of any operator, the best chunk."""
    best = float("inf")
    for _ in range(CHUNKS):
        kept = [torch.empty(64) for _ in range(FREES)]
        begin = time.thread_time()
        kept.clear()
        best = min(best, time.thread_time() - begin)
    return best * 1e6


def timed(name: str) -> Callable[[], float]:
    """What one turn of a workload times."""
    if name == "frees":
        torch.set_num_threads(1)
        return frees_us
    workload = WORKLOADS[name]
    step = workload.make_step()

    def turn() -> float:
        step()  # what ended before it leaves memory to give back
        return workload.step_us(step)

    return turn


def own_cost_us(file: Path, steps: int) -> float:
    """What a file says of the time in our callbacks, in microseconds a step."""
    cost: float = leadline.open(file).meta["cost"]["callbacks_ns"]
    return cost / 1e3 / steps


def main(argv: list[str]) -> None:
    name, turns = argv[0], random.Random(int(argv[1]))
    turn = timed(name)
    steps = CHUNKS * FREES if name == "frees" else WORKLOADS[name].chunks * WORKLOADS[name].steps + 1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.leadline"
        library = build_empty_callbacks(Path(folder))
        modes: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "unprofiled": contextlib.nullcontext,
            "nothing": lambda: empty_callbacks(library),
            "leadline": lambda: leadline.profile(file, quiet=True),
            "torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        }
        found: dict[str, list[float]] = {mode: [] for mode in (*modes, "stated")}
        turn()
        for _ in range(TURNS):
            for mode in turns.sample(sorted(modes), len(modes)):
                with modes[mode]():
                    found[mode].append(turn())
            found["stated"].append(own_cost_us(file, steps))
    print(json.dumps({mode: statistics.median(values) for mode, values in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1:])
