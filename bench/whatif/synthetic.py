"""Predictions against a machine that is known: training loops with noise, a finite queue and contention, in two
dialects, with and without synchronisation records; how right guessed waits are, how far answers are off, how often
ranges hold the truth.

    python bench/whatif/synthetic.py --loops 120

Writes results/whatif-synthetic.md and .json. The truth of an edit is the mean of many steps of the edited program, none
of which is in the trace; `tests/whatif/noisy.py` draws the loops.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "whatif"))

from machine import Op  # type: ignore[import-not-found]
from noisy import (  # type: ignore[import-not-found]
    Loop,
    draw_loop,
    guessed_waits,
    mean_step_ns,
    trace_of,
)

from common import add_results_option, machine, markdown_table, write_results
from leadline.whatif import predict, replay

STEPS = (1, 3, 8)


@dataclass(frozen=True)
class Question:
    """A scenario and the same change of the program."""

    scenario: str
    settings: Mapping[str, str]
    change: Callable[[Op], list[Op]]


@dataclass(frozen=True)
class Answer:
    """One prediction beside the truth; gains are old over new step time."""

    loop: int
    question: str
    steps: int
    records: bool
    predicted: float
    low: float
    high: float
    truth: float
    time_held: bool
    causal_error: float

    @property
    def error(self) -> float:
        return self.predicted / self.truth - 1

    @property
    def held(self) -> bool:
        return self.low <= self.truth <= self.high


def _scaled(op: Op, cpu: float, device: float) -> list[Op]:
    return [replace(op, cpu_ns=int(op.cpu_ns * cpu), kernel_ns=int(op.kernel_ns * device))]


QUESTIONS: Mapping[str, Question] = {
    "device 2x": Question("faster", {"device": "gpu", "factor": "2"}, lambda op: _scaled(op, 1, 0.5)),
    "device 1.3x": Question("faster", {"device": "gpu", "factor": "1.3"}, lambda op: _scaled(op, 1, 1 / 1.3)),
    "CPU 2x": Question("faster", {"device": "cpu", "factor": "2"}, lambda op: _scaled(op, 0.5, 1)),
    "no waits": Question("remove_sync", {"sync": "^cuda(Stream|Device)Synchronize$"},
                         lambda op: [replace(op, kind="python")] if op.kind.startswith("sync") else [op]),
}  # fmt: skip


def ask(number: int, loop: Loop, steps: int, records: bool, folder: Path) -> tuple[list[Answer], tuple[int, int, int]]:
    """All questions on one trace."""
    graph = trace_of(loop, steps, 7 * number + 1, folder, sync_records=records, old=bool(number % 2))
    base = mean_step_ns(loop, 7 * number + 2)
    causal = replay(graph).causal_error
    found = []
    for name, question in QUESTIONS.items():
        # the same scatter before and after, so that the truth about the gain has none of its own
        after = mean_step_ns(loop, 7 * number + 2, question.change)
        try:
            (given,) = predict(graph, [question.scenario], question.settings).scenarios
        except ValueError:
            continue  # the loop has nothing to change
        held = given.low_ns <= after <= given.high_ns
        found.append(
            Answer(
                number, name, steps, records, given.speedup, given.low_gain, given.high_gain, base / after, held, causal
            )
        )
    return found, (0, 0, 0) if records else guessed_waits(graph, loop, steps)


def summary(answers: list[Answer]) -> dict[str, float]:
    """Median and tail of the error, coverage of the ranges of gain and of time, and how wide these are."""
    errors = sorted(abs(answer.error) for answer in answers)
    return {
        "answers": len(answers),
        "median_error": statistics.median(errors),
        "p90_error": errors[int(0.9 * (len(errors) - 1))],
        "gain_coverage": sum(answer.held for answer in answers) / len(answers),
        "time_coverage": sum(answer.time_held for answer in answers) / len(answers),
        "width": statistics.median(answer.high / answer.low - 1 for answer in answers),
    }


def run(loops: range) -> tuple[list[Answer], list[int]]:
    """Every loop at one number of steps, with and without records in turn; guessed waits as right, wrong, in truth."""
    answers: list[Answer] = []
    guesses = [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for number in loops:
            found, waits = ask(number, draw_loop(number), STEPS[number % 3], number % 4 < 2, Path(folder))
            answers += found
            guesses = [before + more for before, more in zip(guesses, waits, strict=True)]
    return answers, guesses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=120)
    add_results_option(parser)
    options = parser.parse_args()
    answers, (right, wrong, true) = run(range(options.loops))
    groups = {"all": answers}
    groups |= {name: [answer for answer in answers if answer.question == name] for name in QUESTIONS}
    groups |= {f"{steps} steps in the trace": [a for a in answers if a.steps == steps] for steps in STEPS}
    groups |= {"with records": [a for a in answers if a.records], "without": [a for a in answers if not a.records]}
    table = {name: summary(members) for name, members in groups.items() if members}
    head = [
        "answers",
        "number",
        "median error",
        "nine in ten below",
        "gain in range",
        "time in range",
        "width of range",
    ]
    rows = [
        [name, f"{row['answers']:.0f}", f"{row['median_error']:.1%}", f"{row['p90_error']:.1%}",
         f"{row['gain_coverage']:.0%}", f"{row['time_coverage']:.0%}", f"{row['width']:.0%}"]
        for name, row in table.items()
    ]  # fmt: skip
    waits = {"precision": right / max(right + wrong, 1), "recall": right / max(true, 1), "in_truth": true}
    said = [
        f"{options.loops} loops: noise, a finite queue in half of them, contention in a third, two dialects; the truth "
        "is measured on other steps than the trace shows.", "",
        markdown_table(head, rows), "",
        f"Guessed waits between streams, in the traces without records: precision {waits['precision']:.1%}, recall "
        f"{waits['recall']:.1%} of {true}. A wait that never made anything wait leaves no mark in a trace.",
    ]  # fmt: skip
    write_results(
        options.results, "whatif-synthetic", machine(),
        {"table": table, "waits": waits}, "\n".join(said),
        title="Predictions against a machine that is known", script="bench/whatif/synthetic.py",
        arguments=f"--loops {options.loops}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
