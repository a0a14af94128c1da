"""What profiling costs, side by side with torch.profiler: time per step, memory, file size, time to stop.

    python bench/overhead.py [--steps 20,100,1000] [--repeat 7,5,3] [--workloads micro,micro_deep,gpt]

Every run is a fresh process. Within a repetition each mode runs once, in random turns, and ratios are taken within the
repetition, so that a slow minute of the machine touches both sides. The program runs unprofiled twice: the ratio of
the two is the machine's noise. Medians over repetitions and ranges. floor.py has the modes in one process.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results
from run_worker import run_worker

MODES = ("none", "again", "leadline", "torch", "torch_stack")
TITLES = {
    "none": "unprofiled",
    "again": "unprofiled again (noise)",
    "leadline": "leadline",
    "torch": "torch.profiler",
    "torch_stack": "torch.profiler, with_stack",
}

Run = dict[str, Any]
Repetition = dict[str, Run]  # by mode


def measure(workload: str, steps: int, repeat: int, directory: Path) -> list[Repetition]:
    """`repeat` repetitions, each with one run of every mode."""
    repetitions = []
    for number in range(repeat):
        order = random.Random(number).sample(MODES, len(MODES))
        run = {mode: "none" if mode == "again" else mode for mode in order}
        repetition = {mode: run_worker(workload, run[mode], steps, directory) for mode in order}
        repetitions.append(repetition)
        for file in directory.glob(f"{workload}-torch*"):
            file.unlink()  # hundreds of megabytes each
        print(f"{workload}, {steps} steps, repetition {number + 1} of {repeat}", flush=True)
    return repetitions


def operators_per_step(profile_file: Path, steps: int) -> float:
    """Operators counted by leadline; the same number for every mode, since the program is the same."""
    import leadline
    from leadline.schema import FrameKind

    tree = leadline.open(profile_file).tree
    count = sum(node.exclusive("time").count for node in tree.find(kind=FrameKind.OPERATOR))
    return float(count) / steps


def spread(repetitions: list[Repetition], mode: str, value: Callable[[Run, Run], float]) -> Spread:
    """Over the repetitions: a value of the run with this mode and the unprofiled run beside it."""
    return Spread.of(value(repetition[mode], repetition["none"]) for repetition in repetitions)


def time_ratio(run: Run, none: Run) -> float:
    return float(run["step_s"] / none["step_s"])


def cpu_ratio(run: Run, none: Run) -> float:
    return float(run["step_cpu_s"] / none["step_cpu_s"])


def added_s(run: Run, none: Run) -> float:
    return float(run["step_s"] - none["step_s"])


def summary(repetitions: list[Repetition], operators: float) -> dict[str, Any]:
    """`added_vs_torch`: leadline's added time over that of torch.profiler without stacks."""
    versus = [added_s(r["leadline"], r["none"]) / added_s(r["torch"], r["none"]) for r in repetitions]
    return {
        "operators_per_step": operators,
        "added_vs_torch": vars(Spread.of(versus)),
        "time_ratio": {mode: vars(spread(repetitions, mode, time_ratio)) for mode in MODES[1:]},
        "cpu_ratio": {mode: vars(spread(repetitions, mode, cpu_ratio)) for mode in MODES[1:]},
        "added_us_per_operator": {
            mode: vars(spread(repetitions, mode, lambda run, none: 1e6 * added_s(run, none) / operators))
            for mode in MODES[1:]
        },
    }


def table(repetitions: list[Repetition]) -> str:
    head = [
        "",
        "ms a step",
        "ratio to unprofiled",
        "ratio of CPU time",
        "peak memory",
        "added memory",
        "file",
        "stop",
        "stop and write",
    ]
    rows = []
    for mode in MODES:
        step = spread(repetitions, mode, lambda run, none: 1e3 * run["step_s"])
        peak = spread(repetitions, mode, lambda run, none: run["peak_rss"])
        row = [TITLES[mode], step.text(3), "1", "1", megabytes(peak.median), "", "", "", ""]
        if mode != "none":
            stop = spread(repetitions, mode, lambda run, none: run["stop_s"])
            finish = spread(repetitions, mode, lambda run, none: run["stop_s"] + run["write_s"])
            row[2] = spread(repetitions, mode, time_ratio).text(3)
            row[3] = spread(repetitions, mode, cpu_ratio).text(3)
            row[5] = megabytes(spread(repetitions, mode, lambda run, none: run["peak_rss"] - none["peak_rss"]).median)
            row[6] = megabytes(spread(repetitions, mode, lambda run, none: run["file_bytes"]).median)
            row[7:] = [f"{stop.text()} s", f"{finish.text()} s"]
        rows.append(row)
    return markdown_table(head, rows)


def section(workload: str, steps: int, repetitions: list[Repetition], facts: dict[str, Any]) -> str:
    added = Spread(**facts["added_vs_torch"])
    per_operator = {mode: Spread(**facts["added_us_per_operator"][mode]) for mode in MODES[1:]}
    return (
        f"## {workload}, {steps} steps, {len(repetitions)} repetitions\n\n{table(repetitions)}\n"
        f"Added time, leadline over torch.profiler without stacks: {added.text()}. "
        f"{facts['operators_per_step']:.0f} operators a step; added µs per operator: "
        + ", ".join(f"{TITLES[mode]} {per_operator[mode].text()}" for mode in MODES[1:])
        + ".\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the cost of profiling.")
    parser.add_argument("--workloads", default="micro,micro_deep,gpt")
    parser.add_argument("--steps", default="20,100,1000")
    parser.add_argument("--repeat", default="7,5,3", help="repetitions, one number for each of --steps")
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    steps = [int(text) for text in arguments.steps.split(",")]
    repeats = [int(text) for text in arguments.repeat.split(",")]
    if len(steps) != len(repeats):
        parser.error(f"--repeat has {len(repeats)} numbers and --steps {len(steps)}; give one for each")

    facts = machine()
    data: dict[str, Any] = {"runs": []}
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        for workload in arguments.workloads.split(","):
            for count, repeat in zip(steps, repeats, strict=True):
                repetitions = measure(workload, count, repeat, Path(folder))
                operators = operators_per_step(Path(folder) / f"{workload}-leadline-{count}.leadline", count)
                numbers = summary(repetitions, operators)
                data["runs"].append({"workload": workload, "steps": count, **numbers, "repetitions": repetitions})
                sections.append(section(workload, count, repetitions, numbers))
    name = "overhead" if "micro" in arguments.workloads else f"overhead-{arguments.workloads}"
    chosen = f"--workloads {arguments.workloads} --steps {arguments.steps} --repeat {arguments.repeat}"
    report = "\n".join(sections)
    write_results(arguments.results, name, facts, data, report, script="bench/overhead.py", arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
