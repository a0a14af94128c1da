"""Whether a profile states its own cost right: `cost` in the file beside what a loop of steps took longer.

    python bench/own_cost.py [--workloads micro,micro_deep,gpt_thread] [--steps 400,400,12] [--rounds 9]

One process, modes in random turns, CPU time of the program's thread from the first step of a session to the last. What
a file states is time inside our callbacks: it is compared with what Leadline takes beyond callbacks that do nothing,
which is what torch charges anybody for looking (see floor.py), and its share of all that was added is shown. Needs g++.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import leadline
import workloads
from common import Spread, add_results_option, machine, markdown_table, write_results
from floor import build_empty_callbacks, empty_callbacks

MODES = ("unprofiled", "nothing", "leadline")


def thread_us(step: Callable[[], None], steps: int) -> float:
    """CPU time of this thread per step, in microseconds."""
    begin = time.thread_time_ns()
    for _ in range(steps):
        step()
    return (time.thread_time_ns() - begin) / steps / 1e3


def measure(
    step: Callable[[], None], steps: int, rounds: int, library: ctypes.CDLL, folder: Path
) -> dict[str, list[float]]:
    """Microseconds per step by mode and, as `stated`, by the files; one value a round."""
    file = folder / "x.leadline"
    made: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
        "unprofiled": contextlib.nullcontext,
        "nothing": lambda: empty_callbacks(library),
        "leadline": lambda: leadline.profile(file, quiet=True),
    }
    found: dict[str, list[float]] = {mode: [] for mode in (*MODES, "stated")}
    thread_us(step, steps)
    for number in range(rounds):
        for mode in random.Random(number).sample(MODES, len(MODES)):
            with made[mode]():
                found[mode].append(thread_us(step, steps))
        found["stated"].append(leadline.open(file).meta["cost"]["callbacks_ns"] / steps / 1e3)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="Compare the stated own cost with the measured one.")
    parser.add_argument("--workloads", default="micro,micro_deep,gpt_thread")
    parser.add_argument("--steps", default="400,400,12", help="steps of a session, one number for each workload")
    parser.add_argument("--rounds", type=int, default=9)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    names = arguments.workloads.split(",")
    counts = [int(text) for text in arguments.steps.split(",")]
    if len(names) != len(counts):
        parser.error(f"--steps has {len(counts)} numbers and --workloads {len(names)}; give one for each")
    facts = machine()
    data, rows = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build_empty_callbacks(folder)
        for workload, steps in zip(names, counts, strict=True):
            found = measure(workloads.load(workload), steps, arguments.rounds, library, folder)
            data[workload] = found

            def beyond(base: str, found: dict[str, list[float]] = found) -> list[float]:
                return [value - other for value, other in zip(found["leadline"], found[base], strict=True)]

            ours, all_added = Spread.of(beyond("nothing")), Spread.of(beyond("unprofiled"))
            stated = Spread.of(found["stated"])
            rows.append(
                [
                    workload,
                    stated.text(0),
                    ours.text(0),
                    f"{stated.median / ours.median:.2f}",
                    all_added.text(0),
                    f"{stated.median / all_added.median:.2f}",
                ]
            )
    head = [
        "",
        "stated, µs a step",
        "measured beyond empty callbacks",
        "stated / that",
        "added in all",
        "stated / that",
    ]
    chosen = f"--workloads {arguments.workloads} --steps {arguments.steps} --rounds {arguments.rounds}"
    write_results(arguments.results, "own_cost", facts, {"us": data}, markdown_table(head, rows), arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
