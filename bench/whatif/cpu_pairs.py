"""What-if predictions against the truth on a CPU: profiled before, predicted, changed, and measured after.

    python bench/whatif/cpu_pairs.py            # under five minutes; writes results/whatif_cpu_pairs.{json,md}

Each pair profiles a few steps of the unchanged program with torch.profiler, predicts the change from that trace alone,
then measures both programs without a profiler, in turns, so that drifts of the machine hit both.
A factor that no trace can hold (how a matrix product scales with threads) is measured on that operator alone, as one
would profile a new kernel before asking.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from outcomes import Outcome, Ratio, asked, captured, outcome, profiled, without, write_results

from common import add_results_option, machine, machine_text
from leadline.whatif.graph import Graph
from leadline.whatif.selftime import SelfTimes
from leadline.whatif.simulator import simulate

LIMIT = 0.10
"""A prediction counts as right within ten percent."""


@dataclass(frozen=True)
class Program:
    """One training program; a pair is two of them that differ in one field."""

    model: str
    batch: int = 64
    workers: int | None = None
    """None: one batch in memory; else a DataLoader with that many workers."""
    fused: bool = False
    dropout: bool = False
    threads: int = 1
    optimizer: str = "adam"


@dataclass(frozen=True)
class Pair:
    """A change: what it is called, both programs, and its prediction."""

    name: str
    before: Program
    after: Program
    ratio: Ratio


class Encoded(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that cost CPU time to decode, as images do."""

    def __init__(self, width: int, cost: int) -> None:
        generator = torch.Generator().manual_seed(1)
        raw = (torch.randn(width, generator=generator) * 8).to(torch.int8).numpy().tobytes()
        self.blob = zlib.compress(raw * cost, 6)
        self.width = width

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        data = torch.frombuffer(bytearray(zlib.decompress(self.blob)[: self.width]), dtype=torch.int8)
        return data.float() / 8, torch.tensor(index % 10)


def build(program: Program) -> nn.Module:
    torch.manual_seed(0)
    if program.model in ("mlp", "wide"):
        width = 1024 if program.model == "mlp" else 2048
        return nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    if program.model == "conv":
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
        )  # fmt: skip
    drop: list[nn.Module] = [nn.Dropout(0.3)] if program.dropout else []
    block = [layer for _ in range(4) for layer in (nn.Linear(768, 768), nn.GELU(), *drop)]
    return nn.Sequential(nn.Linear(512, 768), *block, nn.Linear(768, 10))


def batches(program: Program) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    if program.workers is None:
        shape = (program.batch, 3, 32, 32) if program.model == "conv" else (program.batch, 512)
        item = torch.randn(shape), torch.randint(0, 10, (program.batch,))
        while True:
            yield item
    loader = torch.utils.data.DataLoader(
        Encoded(512, 400), batch_size=program.batch, num_workers=program.workers, persistent_workers=program.workers > 0
    )
    while True:
        yield from loader


class Runner:
    """A program ready to take steps."""

    def __init__(self, program: Program) -> None:
        torch.set_num_threads(program.threads)
        self.program = program
        self.model = build(program)
        self.loss = nn.CrossEntropyLoss()
        parameters = self.model.parameters()
        self.optimizer: torch.optim.Optimizer = (
            torch.optim.SGD(parameters, lr=1e-3)
            if program.optimizer == "sgd"
            else torch.optim.Adam(parameters, lr=1e-4, fused=program.fused, foreach=False)
        )
        self.data = batches(program)

    def step(self) -> None:
        inputs, labels = next(self.data)
        self.optimizer.zero_grad()
        self.loss(self.model(inputs), labels).backward()
        self.optimizer.step()

    def timed(self, steps: int) -> list[float]:
        torch.set_num_threads(self.program.threads)
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - begin)
        return times


def with_threads(before: Program, after: Program) -> Ratio:
    """Matrix products and element-wise operators become faster by what one of each, alone, gains from the threads."""

    def ratio(graph: Graph) -> tuple[float, float, float]:
        left, right = torch.randn(before.batch, 2048), torch.randn(2048, 2048)
        edited = graph.copy()
        for names, call in (
            ("addmm|mm", lambda: torch.mm(left, right)),
            ("clamp_min|threshold_backward|add_|sum|mul_|fill_|copy_", lambda: left.clamp_min(0)),
        ):
            factor = _time_of(call, after.threads) / _time_of(call, before.threads)
            SelfTimes(edited).scale(edited.select(name=f"^aten::({names})$"), factor)
        torch.set_num_threads(before.threads)
        value = simulate(edited).makespan_ns / simulate(graph).makespan_ns
        return value, value, value

    return ratio


def _time_of(call: Callable[[], object], threads: int) -> float:
    """Median seconds of a call with a number of threads."""
    torch.set_num_threads(threads)
    times = []
    for _ in range(40):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[5:])


def pairs() -> list[Pair]:
    loading = Program("mlp", batch=64, workers=0)
    adam = Program("mlp", batch=64)
    sgd = Program("mlp", batch=128, optimizer="sgd")
    conv = Program("conv", batch=16, optimizer="sgd")
    dropout = Program("gelu", batch=128, dropout=True, optimizer="sgd")
    one = Program("wide", batch=256, optimizer="sgd")
    drops = without(r"^aten::(native_)?dropout$", r"(MulBackward0|NativeDropoutBackward0)$")
    found = [
        Pair("fused Adam", adam, replace(adam, fused=True), asked("fused_optimizer")),
        Pair("batch x2, matrix products", sgd, replace(sgd, batch=256), asked("batch_size", factor="2")),
        Pair("batch x2, convolutions", conv, replace(conv, batch=32), asked("batch_size", factor="2")),
        Pair("dropout removed", dropout, replace(dropout, dropout=False), drops),
    ]
    if len(os.sched_getaffinity(0)) >= 2:
        two = replace(one, threads=2)
        found += [
            Pair("threads 1 to 2", one, two, with_threads(one, two)),
            Pair("loader workers 0 to 1", loading, replace(loading, workers=1), asked("data_loading", workers="1")),
        ]
    return found


def measure(pair: Pair, rounds: int, steps: int, source: str) -> Outcome:
    before, after = Runner(pair.before), Runner(pair.after)
    before.timed(5)
    after.timed(5)
    torch.set_num_threads(pair.before.threads)
    kineto = [torch.profiler.ProfilerActivity.CPU]
    graph = captured(before.step) if source == "leadline" else profiled(before.step, kineto)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        times[0].extend(before.timed(steps))
        times[1].extend(after.timed(steps))
    return outcome(pair.name, graph, pair.ratio, statistics.median(times[0]), statistics.median(times[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description="What-if predictions against the truth on a CPU.")
    parser.add_argument("--rounds", type=int, default=6, help="turns of before and after (default: 6)")
    parser.add_argument("--steps", type=int, default=12, help="steps per turn (default: 12)")
    parser.add_argument(
        "--source", choices=("kineto", "leadline"), default="kineto", help="who records the steps before the change"
    )
    parser.add_argument("--only", default="", help="run only pairs whose name contains this")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    print(machine_text(facts))
    found = []
    for pair in pairs():
        if arguments.only in pair.name:
            found.append(measure(pair, arguments.rounds, arguments.steps, arguments.source))
            print(json.dumps(found[-1].facts(LIMIT)))
    recorder = "torch.profiler" if arguments.source == "kineto" else "Leadline"
    title, script = f"What-if predictions on a CPU from traces of {recorder}", "bench/whatif/cpu_pairs.py"
    stem = "whatif_cpu_pairs" if arguments.source == "kineto" else "whatif_cpu_pairs_leadline"
    print(write_results(arguments.results, stem, title, facts, found, script, LIMIT))
    return 0 if all(abs(item.error) <= LIMIT for item in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
