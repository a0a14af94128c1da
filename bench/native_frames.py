"""What native frames at operators cost: the same steps without Leadline, with it, and with `--native`, in one process.

    python bench/native_frames.py [--rounds 9] [--steps 60] [--workloads micro,gpt_thread]

The modes take turns. Of each round and mode the median CPU time of a step's thread is taken, and ratios to the
unprofiled steps of the same round; medians over the rounds and their ranges.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import workloads
from common import Spread, add_results_option, machine, markdown_table, write_results

MODES: dict[str, dict[str, Any] | None] = {
    "unprofiled": None,
    "leadline": {},
    "CPU samples": {"cpu_sample": 99.0},
    "native frames": {"native": "yes"},
}


def step_s(step: Callable[[], None], steps: int, options: dict[str, Any] | None, folder: Path) -> float:
    """Median CPU seconds of a step, profiled with these options."""
    import leadline

    times = []
    if options is not None:
        leadline.start(folder / "bench.leadline", quiet=True, **options)
    for _ in range(steps):
        begin = time.thread_time()
        step()
        times.append(time.thread_time() - begin)
    if options is not None:
        leadline.stop()
    return statistics.median(times[steps // 5 :])  # the first ones compute rules and meet paths


def measure(workload: str, rounds: int, steps: int) -> dict[str, list[float]]:
    """By mode: ratios to the unprofiled steps of the same round."""
    step = workloads.load(workload)
    for _ in range(5):
        step()
    ratios: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            order = random.Random(number).sample(list(MODES), len(MODES))
            seconds = {mode: step_s(step, steps, MODES[mode], Path(folder)) for mode in order}
            for mode in MODES:
                ratios[mode].append(seconds[mode] / seconds["unprofiled"])
            print(workload, {mode: round(ratios[mode][-1], 3) for mode in MODES}, flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--workloads", default="micro,gpt_thread")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    rows = []
    data: dict[str, dict[str, list[float]]] = {}
    for workload in arguments.workloads.split(","):
        ratios = measure(workload, arguments.rounds, arguments.steps)
        data[workload] = ratios
        rows += [[workload, mode, Spread.of(values).text(3)] for mode, values in ratios.items() if mode != "unprofiled"]
    table = markdown_table(["program", "mode", "CPU time of a step, to unprofiled"], rows)
    write_results(arguments.results, "native_frames", facts, data, table, title="Native frames at operators")


if __name__ == "__main__":
    main()
