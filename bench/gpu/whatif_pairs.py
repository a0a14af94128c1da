"""What-if predictions against the truth on a GPU: AMP, fused Adam, channels_last, batch size, compile, loader workers.

    python bench/gpu/whatif_pairs.py            # ten minutes on one GPU; writes results/whatif_gpu_pairs.*

Four models written here (a residual network, an encoder, a decoder, a recommendation model), so nothing but torch is
needed. Each is profiled once per pair as it is; the change is predicted from that trace and then made and measured. The
errors to beat are Daydream's: AMP below 13 %, fused Adam below 7 to 13 %.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "whatif"))

from gpu_models import MODELS, Batch
from outcomes import Outcome, Ratio, asked, outcome, profiled, without, write_results

from common import add_results_option, machine, machine_text

LIMIT = 0.13
"""Daydream's largest error for mixed precision."""


@dataclass(frozen=True)
class Program:
    """One training program on the GPU."""

    model: str
    batch: int
    amp: bool = False
    fused: bool = False
    channels_last: bool = False
    compiled: bool = False
    workers: int | None = None


@dataclass(frozen=True)
class Pair:
    """A change and its prediction."""

    name: str
    before: Program
    after: Program
    ratio: Ratio


class Runner:
    """A program ready to take steps; a step ends when the GPU has finished it only where `timed` asks."""

    def __init__(self, program: Program) -> None:
        torch.manual_seed(0)
        self.program = program
        spec = MODELS[program.model]
        self.format: Any = torch.channels_last if program.channels_last else torch.contiguous_format
        model: nn.Module = spec.build().cuda()
        if program.channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=1e-4, fused=program.fused, foreach=None if program.fused else True
        )
        self.model: Callable[..., torch.Tensor] = torch.compile(model) if program.compiled else model
        self.data = self._data(spec.batch)
        self.loss = nn.CrossEntropyLoss()

    def _data(self, make: Callable[[int], Batch]) -> Iterator[Batch]:
        if self.program.workers is None:
            item = make(self.program.batch)
            on_device = Batch(tuple(self._place(part) for part in item.inputs), item.labels.cuda())
            while True:
                yield on_device
        loader = torch.utils.data.DataLoader(
            Decoded(make), batch_size=None, num_workers=self.program.workers, pin_memory=True,
            persistent_workers=self.program.workers > 0,
        )  # fmt: skip
        while True:
            for inputs, labels in loader:
                yield Batch(tuple(self._place(part) for part in inputs), labels.cuda(non_blocking=True))

    def _place(self, part: torch.Tensor) -> torch.Tensor:
        moved = part.cuda(non_blocking=True)
        return moved.contiguous(memory_format=self.format) if moved.dim() == 4 else moved

    def step(self) -> None:
        batch = next(self.data)
        self.optimizer.zero_grad()
        cast = torch.autocast("cuda", torch.bfloat16) if self.program.amp else contextlib.nullcontext()
        with cast:
            loss = self.loss(self.model(*batch.inputs), batch.labels)
        loss.backward()
        self.optimizer.step()

    def timed(self, rounds: int, steps: int) -> float:
        """Median seconds per step over rounds of steps, each round ending with the GPU idle."""
        found = []
        for _ in range(rounds):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(steps):
                self.step()
            torch.cuda.synchronize()
            found.append((time.perf_counter() - begin) / steps)
        return statistics.median(found)


class Decoded(torch.utils.data.Dataset[tuple[tuple[torch.Tensor, ...], torch.Tensor]]):
    """Whole batches that cost CPU time to make."""

    def __init__(self, make: Callable[[int], Batch]) -> None:
        self.make = make

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        batch = self.make(32)
        for _ in range(6):  # stands for decoding and augmentation
            batch = Batch(
                tuple(part.clone() if part.is_floating_point() else part for part in batch.inputs), batch.labels
            )
            for part in batch.inputs:
                if part.is_floating_point():
                    part.sin_().add_(0.1).clamp_(-2, 2)
        return batch.inputs, batch.labels


def pairs(model: str) -> list[Pair]:
    spec = MODELS[model]
    plain = Program(model, spec.size)
    found = [
        Pair(f"{model}: AMP (bf16)", plain, replace(plain, amp=True), asked("amp", dtype="bf16")),
        Pair(f"{model}: fused Adam", plain, replace(plain, fused=True), asked("fused_optimizer")),
        Pair(f"{model}: batch x2", plain, replace(plain, batch=spec.size * 2), asked("batch_size", factor="2")),
        Pair(f"{model}: compile", plain, replace(plain, compiled=True), asked("fuse_elementwise")),
    ]
    if spec.convolutions:
        layout = without(r"nchwToNhwc|nhwcToNchw")
        found.append(Pair(f"{model}: channels_last", plain, replace(plain, channels_last=True), layout))
        loading = replace(plain, batch=32, workers=0)
        ratio = asked("data_loading", workers="4")
        found.append(Pair(f"{model}: loader workers 0 to 4", loading, replace(loading, workers=4), ratio))
    return found


def measure(pair: Pair, rounds: int, steps: int) -> Outcome:
    """Both programs, one after another, so that only one holds the GPU's memory."""
    before = Runner(pair.before)
    before.timed(2, 5)
    before_s = before.timed(rounds, steps)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    graph = profiled(before.step, activities)
    del before
    _free()
    after = Runner(pair.after)
    after.timed(2, 5)
    after_s = after.timed(rounds, steps)
    del after
    _free()
    return outcome(pair.name, graph, pair.ratio, before_s, after_s)


def _free() -> None:
    gc.collect()
    torch.compiler.reset()
    torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description="What-if predictions against the truth on a GPU.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per program (default: 5)")
    parser.add_argument("--steps", type=int, default=10, help="steps per round (default: 10)")
    parser.add_argument("--only", default="", help="run only pairs whose name contains this")
    add_results_option(parser)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("This script compares predictions with a real GPU and torch sees none; run it on a machine with CUDA.")
        return 2
    torch.backends.cuda.matmul.allow_tf32 = False
    facts = {**machine(), "gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    print(machine_text(facts), facts["gpu"])
    found: list[Outcome] = []
    failed: list[str] = []
    for model in MODELS:
        for pair in pairs(model):
            if arguments.only not in pair.name:
                continue
            try:
                found.append(measure(pair, arguments.rounds, arguments.steps))
            except (RuntimeError, ValueError) as error:
                # one pair that this machine cannot run (memory, a missing compiler) must not cost the others
                failed.append(f"{pair.name}: {str(error).splitlines()[0]}")
                print(failed[-1])
                _free()
                continue
            print(json.dumps(found[-1].facts(LIMIT)), flush=True)
    title = f"What-if predictions on {facts['gpu']}"
    print(write_results(arguments.results, "whatif_gpu_pairs", title, facts, found, "bench/gpu/whatif_pairs.py", LIMIT))
    for line in failed:
        print("not measured:", line)
    return 0 if found and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main())
