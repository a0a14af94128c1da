"""Whether a profile states its own cost right: `cost` in the file beside what a loop of steps took longer.

    python bench/own_cost.py [--workloads micro,indexing,gpt_thread] [--steps 400,80,12] [--rounds 9]

One process, modes in random turns, CPU time of the program's thread from the first step of a session to the last. A
file states the time inside our callbacks; what outputs state is that and what is spent beside them (`_own_cost.py`),
which is compared with all that was added, also where shapes are recorded, as `leadline why` does.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import leadline
import workloads
from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline._own_cost import cost_ns, slower_by

MODES = ("unprofiled", "leadline", "shapes")
OURS = ("leadline", "shapes")


def thread_us(step: Callable[[], None], steps: int) -> float:
    """CPU time of this thread per step, in microseconds."""
    begin = time.thread_time_ns()
    for _ in range(steps):
        step()
    return (time.thread_time_ns() - begin) / steps / 1e3


def measure(step: Callable[[], None], steps: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    """Microseconds per step by mode; as `MODE inside` those in our callbacks, and as `MODE said` all that measuring
    adds, by the files; one value a round."""
    file = folder / "x.leadline"
    made: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
        "unprofiled": contextlib.nullcontext,
        "leadline": lambda: leadline.profile(file, quiet=True),
        "shapes": lambda: leadline.profile(file, quiet=True, shapes=True),
    }
    found: dict[str, list[float]] = {
        mode: [] for mode in (*MODES, *(f"{mode} {what}" for mode in OURS for what in ("inside", "said")))
    }
    thread_us(step, steps)
    for number in range(rounds):
        for mode in random.Random(number).sample(MODES, len(MODES)):
            with made[mode]():
                found[mode].append(thread_us(step, steps))
            if mode in OURS:
                cost = {**leadline.open(file).meta["cost"], "flush_ns": 0}  # of another thread
                found[f"{mode} inside"].append(cost["callbacks_ns"] / steps / 1e3)
                found[f"{mode} said"].append(cost_ns(cost, mode == "shapes") / steps / 1e3)
    return found


def beyond(found: dict[str, list[float]], mode: str, base: str) -> list[float]:
    """Of each round, what `mode` takes longer than `base`."""
    return [value - other for value, other in zip(found[mode], found[base], strict=True)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="Compare the stated own cost with the measured one.")
    parser.add_argument("--workloads", default="micro,indexing,gpt_thread")
    parser.add_argument("--steps", default="400,80,12", help="steps of a session, one number for each workload")
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
        for workload, steps in zip(names, counts, strict=True):
            found = measure(workloads.load(workload), steps, arguments.rounds, folder)
            data[workload] = found

            for mode in OURS:
                inside, added = Spread.of(found[f"{mode} inside"]), Spread.of(beyond(found, mode, "unprofiled"))
                said = Spread.of(found[f"{mode} said"]).median
                rows.append(
                    [
                        workload + (", shapes" if mode == "shapes" else ""),
                        inside.text(0),
                        added.text(0),
                        f"{inside.median / added.median:.2f}",
                        f"{100 * slower_by(said / Spread.of(found[mode]).median):.0f} %",
                        f"{100 * added.median / Spread.of(found['unprofiled']).median:.0f} %",
                        f"{said / added.median:.2f}",
                    ]
                )
    head = [
        "",
        "inside calls, µs a step",
        "added in all, µs",
        "inside / added",
        "overhead as stated",
        "as measured",
        "stated / measured, µs",
    ]
    chosen = f"--workloads {arguments.workloads} --steps {arguments.steps} --rounds {arguments.rounds}"
    write_results(arguments.results, "own_cost", facts, {"us": data}, markdown_table(head, rows), arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
