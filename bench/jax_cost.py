"""What measuring costs a JAX training loop, beside jax.profiler in the same process, and whether memory stays flat.

    python bench/jax_cost.py [--model transformer] [--rounds 15] [--steps 120] [--flat recommender]

One process on one core. Within a round each mode runs the same number of steps once, in random turns; what counts is
CPU time of all threads inside the loop, against the unprofiled turn of the round. Writing the file is not in it, for
neither. `--flat MODEL` runs 10,000 steps of a small model under Leadline: resident memory after 1,000 and at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

import leadline
from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results
from worker import memory
from workloads.twins import MODELS

MUST = 1.03
FLAT_STEPS, EARLY = 10_000, 1_000


def model(name: str) -> Callable[[], object]:
    made: Callable[[], object] = importlib.import_module(f"workloads.twins.{name}").in_jax()
    return made


def cpu_ms(step: Callable[[], object], steps: int) -> float:
    """CPU milliseconds of a step, all threads."""
    begin = time.process_time()
    for _ in range(steps):
        step()
        leadline.step()
    return 1e3 * (time.process_time() - begin) / steps


def compare(name: str, rounds: int, steps: int, folder: Path) -> dict[str, list[float]]:
    ways: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
        "unprofiled": contextlib.nullcontext,
        "unprofiled again": contextlib.nullcontext,
        "leadline": lambda: leadline.profile(folder / "x.leadline", quiet=True),
        "jax.profiler": lambda: jax.profiler.trace(str(folder / "trace")),
    }
    step = model(name)
    cpu_ms(step, steps)
    runs: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in random.Random(number).sample(sorted(ways), len(ways)):
            with ways[way]():
                step()
                runs[way].append(cpu_ms(step, steps))
        print(f"{name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return runs


def flat(name: str, folder: Path) -> tuple[int, int]:
    """Resident bytes after 1,000 steps and after 10,000."""
    step = model(name)
    with leadline.profile(folder / "long.leadline", quiet=True):
        cpu_ms(step, EARLY)
        early = memory("VmRSS")
        cpu_ms(step, FLAT_STEPS - EARLY)
        return early, memory("VmRSS")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="transformer")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--flat", choices=MODELS, default="recommender")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        runs = compare(arguments.model, arguments.rounds, arguments.steps, Path(name))
        early, late = flat(arguments.flat, Path(name))
    plain = runs["unprofiled"]
    ratios = {way: Spread.of(a / b for a, b in zip(values, plain, strict=True)) for way, values in runs.items()}
    rows = [[way, f"{Spread.of(runs[way]).text()}", spread.text(3)] for way, spread in ratios.items()]
    report = (
        f"{arguments.model}, {arguments.rounds} rounds of {arguments.steps} steps a mode; medians and ranges.\n\n"
        f"{markdown_table(['mode', 'CPU of a step, ms', 'ratio to unprofiled'], rows)}\n"
        f"{arguments.flat}, {FLAT_STEPS:,} steps under Leadline: {megabytes(early)} resident after {EARLY:,} steps, "
        f"{megabytes(late)} at the end.\n"
    )
    data = {"runs": runs, "resident": {"early": early, "late": late}}
    write_results(arguments.results, "jax_cost", {**facts, "jax": jax.__version__}, data, report)
    return 0 if ratios["leadline"].median <= MUST else 1


if __name__ == "__main__":
    sys.exit(main())
