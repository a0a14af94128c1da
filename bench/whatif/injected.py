"""Known delays as truth: what-if predictions of a delay that is put into a program, against what it costs.

    python bench/whatif/injected.py                                   # all programs and places
    python bench/whatif/injected.py --only mlp --only loader --share 3

A busy delay (no sleep: the thread keeps its core) of 1, 3 and 10 % of the step goes into the step behind one operator,
into its loader, or into a thread beside the step that holds no lock. The program is traced without the delay; the graph
of the trace gets it at that place, and is simulated. Both programs are then timed in turns. The slope, measured over
predicted, is 1 where the graph knows the place to be on the critical path; of the hidden place both changes are 0. A
slope that is not 1 shows which edge of the graph is wrong. Needs a quiet machine with a core for the hidden thread:
with shares of 1 % noise must be far below 1 %.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from cpu_models import Program, Runner

from common import add_results_option, machine, markdown_table, write_results
from leadline.whatif.graph import Graph
from leadline.whatif.load import load
from leadline.whatif.simulator import simulate

MODELS = {
    "mlp": Program("mlp", 64, "adam"),
    "transformer": Program("transformer", 8),
    "recommender": Program("recommender", 256, "adam"),
    "conv": Program("conv", 16, "momentum"),
    "lstm": Program("lstm", 32, "adam"),
    "mixer": Program("mixer", 16, "adamw"),
    "autoencoder": Program("autoencoder", 32, "momentum"),
    "wide": Program("wide", 256),
}
MARKS = {"operator": "aten::zeros", "loader": "aten::ones"}
"""Operators that the program calls nowhere else; the delay runs right behind them, in the step or in its loader."""
PLACES = (*MARKS, "hidden")


@dataclass(frozen=True)
class Row:
    """Relative changes of the step: 0.03 is 3 % longer."""

    program: str
    place: str
    share: float
    predicted: float
    measured: float
    noise: float

    @property
    def slope(self) -> float:
        """Measured over predicted; of the hidden place measured over the delay, which should be 0."""
        return self.measured / (self.predicted or self.share)


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


class Injected:
    """A program with a delay at a place, and its twin without: `seconds` may change from turn to turn."""

    def __init__(self, program: Program, place: str) -> None:
        self.seconds = 0.0
        self._place = place
        self._runner = Runner(program)
        self._busy = threading.Event()
        self._stop = False
        if place == "loader":
            self._runner.data = self._batches(self._runner.data)
        if place == "hidden":
            threading.Thread(target=self._beside, daemon=True).start()

    def _beside(self) -> None:
        while not self._stop:
            if self._busy.wait(0.1):
                self._busy.clear()
                until = time.perf_counter() + self.seconds
                while time.perf_counter() < until:
                    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 400)  # without the interpreter's lock

    def step(self) -> None:
        if self._place == "hidden":
            self._busy.set()
        elif self._place == "operator":
            torch.zeros(1)
            busy(self.seconds)
        self._runner.step()

    def _batches(self, data: Iterator[Any]) -> Iterator[Any]:
        for batch in data:
            torch.ones(1)
            busy(self.seconds)
            yield batch

    def close(self) -> None:
        self._stop = True


def turns(program: Injected, delay_s: float, rounds: int, steps: int) -> Iterator[tuple[float, float]]:
    """(seconds of a step without, with the delay), in turns that change their order."""
    for number in range(rounds):
        found = {}
        for seconds in (0.0, delay_s) if number % 2 == 0 else (delay_s, 0.0):
            program.seconds = seconds
            program.step()
            began = time.perf_counter()
            for _ in range(steps):
                program.step()
            found[seconds] = (time.perf_counter() - began) / steps
        yield found[0.0], found[delay_s]


def predicted(graph: Graph, place: str, delay_ns: float) -> float:
    """The delay added to the range at that place in every step; 0 for work that no step waits for."""
    if place == "hidden":
        return 0.0
    edited = graph.copy()
    wanted = edited.select(name=rf"^{MARKS[place]}$")
    if not wanted:
        raise ValueError(f"the trace has no task called {MARKS[place]}")
    edited.set_duration(wanted, edited.column("duration_ns")[wanted.ids] + int(delay_ns))
    return simulate(edited).makespan_ns / simulate(graph).makespan_ns - 1


def trace(program: Injected, folder: Path) -> Path:
    path = folder / "trace.json"
    schedule = torch.profiler.schedule(wait=0, warmup=2, active=5)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        record_shapes=True,
        on_trace_ready=lambda one: one.export_chrome_trace(str(path)),
    ) as profiler:
        for _ in range(7):
            program.step()
            profiler.step()
    return path


def measured(name: str, place: str, shares: list[float], arguments: argparse.Namespace) -> list[Row]:
    program = Injected(MODELS[name], place)
    for _ in range(10):
        program.step()
    with tempfile.TemporaryDirectory() as folder:
        graph = load(str(trace(program, Path(folder))))
    alone = statistics.median(one for one, _ in turns(program, 0.0001, 3, arguments.steps))
    rows = []
    for share in shares:
        ratios = [b / a - 1 for a, b in turns(program, share * alone, arguments.rounds, arguments.steps)]
        low, _, high = statistics.quantiles(ratios, n=4)
        step_ns = graph.info.measured_ns / max(len(graph.info.steps), 1)
        rows.append(
            Row(name, place, share, predicted(graph, place, share * step_ns), statistics.median(ratios), high - low)
        )
    program.close()
    return rows


def _chosen(of: tuple[str, ...], only: list[str]) -> list[str]:
    """Those that were named; all where none of this kind was."""
    return [one for one in of if one in only] or list(of)


def main() -> int:
    parser = argparse.ArgumentParser(description="Known delays as truth for what-if predictions.")
    parser.add_argument("--only", action="append", default=[], help="programs or places; repeatable")
    parser.add_argument("--share", action="append", type=float, default=[], help="percent of the step (1, 3 and 10)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10)
    add_results_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    shares = [one / 100 for one in arguments.share or (1.0, 3.0, 10.0)]
    facts = machine()
    rows: list[Row] = []
    for name in _chosen(tuple(MODELS), arguments.only):
        for place in _chosen(PLACES, arguments.only):
            for row in measured(name, place, shares, arguments):
                rows.append(row)
                print(f"{name} {place} {row.share:.0%}: slope {row.slope:+.3f}, noise {row.noise:.1%}", flush=True)
    head = ["program", "place", "delay", "predicted", "measured", "slope", "noise"]
    table = markdown_table(
        head,
        [
            [
                one.program,
                one.place,
                f"{one.share:.0%}",
                f"{one.predicted:+.2%}",
                f"{one.measured:+.2%}",
                f"{one.slope:+.3f}",
                f"{one.noise:.2%}",
            ]
            for one in rows
        ],
    )
    data = {"rows": [vars(one) | {"slope": one.slope} for one in rows]}
    write_results(
        arguments.results,
        "whatif-injected",
        facts,
        data,
        table,
        title="Known delays as truth",
        script="bench/whatif/injected.py",
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
