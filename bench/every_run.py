"""What an always-on training profile costs: a small transformer trained with and without it, in turns.

    python bench/every_run.py [--results FOLDER]

One process trains the same model for blocks of steps, by turns with and without `build_profiler` (every step measured,
one file per block, so beginning and ending a file is in the cost of a file, not of a step). The median step of a block
with it is compared with the two blocks around it without it, so that a machine that slowly changes its pace cancels
out: in CPU time of the loop's thread and of the process, which a busy machine disturbs less than wall time, and in wall
time. The second figure is what rolling costs: seconds in which a file ends and the next begins, over the minutes that a
file lasts. The third is which part of the steps is measured under the budget that files which roll have, in a long
block at the end: what every step would cost, times that part, is what such a profile costs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import leadline
from leadline._own_cost import cost_ns
from leadline.capture.training.step_budget import ROLLING_PERCENT
from leadline.demo.gpt import GPT, GPTConfig

WIDTH, LAYERS, LENGTH, BATCH = 256, 4, 128, 4
LONG = 200
BLOCKS, STEPS, ROLL_MINUTES = 24, 8, 10


def block(
    model: Any, optimizer: Any, folder: Path | None, steps: int = STEPS, budget: float = 0.0
) -> tuple[list[float], list[float], list[float], float]:
    """CPU seconds of the loop's thread and of the process and wall seconds of each step, and seconds to begin and end a
    file."""
    begin = time.perf_counter()
    profiler = None
    if folder is not None:
        profiler = leadline.build_profiler(
            enable=True, start_step=10**6, end_step=10**6 + 1, trace_dir=str(folder), rank=0, budget=budget
        )
        assert profiler is not None
        profiler.start(1)
    around = time.perf_counter() - begin
    thread, cpu, wall = [], [], []
    for step in range(1, steps + 1):
        tokens = torch.randint(0, 256, (BATCH, LENGTH))
        times = time.process_time(), time.perf_counter(), time.thread_time()
        model.loss(tokens, tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
        if profiler is not None:
            profiler.step(step)
        thread.append(time.thread_time() - times[2])
        cpu.append(time.process_time() - times[0])
        wall.append(time.perf_counter() - times[1])
    begin = time.perf_counter()
    if profiler is not None:
        profiler.stop()
    return thread[2:], cpu[2:], wall[2:], around + time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = GPT(GPTConfig(vocabulary=256, context=LENGTH, layers=LAYERS, heads=4, width=WIDTH, dropout=0.0))
    optimizer = torch.optim.AdamW(model.parameters())
    block(model, optimizer, None)
    clocks = ("CPU time of the loop's thread", "CPU time of the process", "wall time")
    blocks: list[tuple[float, ...]] = []  # median step by clock; without, with, without, ..., without
    around = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 * BLOCKS + 1):
            on = bool(number % 2)
            *taken, files = block(model, optimizer, Path(folder) if on else None)
            blocks.append(tuple(map(statistics.median, taken)))
            around += [files] if on else []
        costs = [leadline.open(str(path)).meta["cost"] for path in Path(folder).glob("*.leadline")]
        walls = [leadline.open(str(path)).meta["wall_ns"] for path in Path(folder).glob("*.leadline")]
        sizes = [path.stat().st_size for path in Path(folder).glob("*.leadline")]
    with tempfile.TemporaryDirectory() as folder:
        block(model, optimizer, Path(folder), LONG, ROLLING_PERCENT)
        (side,) = Path(folder).glob("*.json")
        told = json.loads(side.read_text())
        (path,) = Path(folder).glob("*.leadline")
        spent = cost_ns(leadline.open(str(path)).meta["cost"], shapes=False) / leadline.open(str(path)).meta["wall_ns"]
    rows = []
    for clock, name in enumerate(clocks):
        steps = [medians[clock] for medians in blocks]
        ratios = [2 * steps[at] / (steps[at - 1] + steps[at + 1]) - 1 for at in range(1, len(steps), 2)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        without, with_it = (1e3 * statistics.median(steps[first::2]) for first in (0, 1))
        rows.append(f"| {name} | {without:.2f} ms | {with_it:.2f} ms "
                    f"| {100 * middle:+.2f} % | {100 * low:+.2f} to {100 * high:+.2f} % |")  # fmt: skip
    own = sum(cost["callbacks_ns"] for cost in costs) / sum(walls)
    each = sum(cost["callbacks_ns"] for cost in costs) / sum(cost["events"] for cost in costs)
    flushed = sum(cost["flush_ns"] for cost in costs) / len(costs)
    roll = statistics.median(around)
    text = "\n".join(
        [
            f"GPT of {LAYERS} layers and width {WIDTH}, {BATCH} sequences of {LENGTH}, {BLOCKS} blocks of",
            f"{STEPS - 2} steps with it between blocks without; torch {torch.__version__}, one thread, {sys.platform}; "
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
            "",
            "| median of a step | without | with | cost, median of blocks | middle half |",
            "| --- | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            f"By Leadline's own measure its call-backs took {100 * own:.2f} % of the wall time, {each:.0f} ns each;",
            f"writing segments took {flushed / 1e6:.0f} ms of another thread per file.",
            "",
            f"Ending a file and beginning the next: {roll * 1e3:.0f} ms, {100 * roll / (60 * ROLL_MINUTES):.3f} % of "
            f"{ROLL_MINUTES} minutes. A file has {statistics.median(sizes) / 1e3:.0f} kB.",
            "",
            f"With the budget of files that roll ({ROLLING_PERCENT} %) {told['measured_steps']} of {told['steps']} "
            "steps were measured; call-backs, segments and",
            f"what is spent beside them took {100 * spent:.2f} % of the wall time, by estimate.",
            "",
        ]
    )
    print(text)
    if arguments.results:
        (arguments.results / "every-run.md").write_text(f"# An always-on training profile\n\n{text}")


if __name__ == "__main__":
    main()
