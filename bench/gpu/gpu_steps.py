"""A training program of one of the models, ready to take steps; on the GPU, or on the CPU as a rehearsal."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from gpu_models import MODELS, Batch
from torch import nn


@dataclass(frozen=True)
class Program:
    """One training program; a pair is two of them that differ in one field."""

    model: str
    batch: int
    amp: bool = False
    fused: bool = False
    channels_last: bool = False
    compiled: bool = False
    graphed: bool = False
    """Forward and backward as CUDA graphs."""
    workers: int | None = None
    """None: one batch that stays on the device; else a DataLoader with that many workers."""
    tiny: bool = False


class Runner:
    """Takes steps; a step waits for the GPU only where the program itself does."""

    def __init__(self, program: Program, device: str) -> None:
        torch.manual_seed(0)
        self.program = program
        self.device = device
        spec = MODELS[program.model]
        self.format: Any = torch.channels_last if program.channels_last else torch.contiguous_format
        model: nn.Module = (spec.build_tiny if program.tiny else spec.build)().to(device)
        if program.channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=1e-4, fused=program.fused, foreach=None if program.fused else True
        )
        self.model: Callable[..., torch.Tensor] = torch.compile(model) if program.compiled else model
        if program.graphed:
            inputs = spec.batch(program.batch).inputs
            made: Any = torch.cuda.make_graphed_callables(model, tuple(self._place(part) for part in inputs))
            self.model = made
        self.loader: torch.utils.data.DataLoader[Any] | None = None
        self.data = self._data(spec.batch_tiny if program.tiny else spec.batch)
        self.loss = nn.CrossEntropyLoss()

    def _data(self, make: Callable[[int], Batch]) -> Iterator[Batch]:
        if self.program.workers is None:
            item = make(self.program.batch)
            on_device = Batch(tuple(self._place(part) for part in item.inputs), item.labels.to(self.device))
            while True:
                yield on_device
        workers = self.program.workers
        self.loader = torch.utils.data.DataLoader(
            Decoded(make, self.program.batch), batch_size=None, num_workers=workers, pin_memory=self.device == "cuda",
            persistent_workers=workers > 0,
        )  # fmt: skip
        while True:
            for inputs, labels in self.loader:
                placed = tuple(self._place(part) for part in inputs)
                yield Batch(placed, labels.to(self.device, non_blocking=True))

    def _place(self, part: torch.Tensor) -> torch.Tensor:
        moved = part.to(self.device, non_blocking=True)
        return moved.contiguous(memory_format=self.format) if moved.dim() == 4 else moved

    def step(self) -> None:
        batch = next(self.data)
        self.optimizer.zero_grad()
        cast = torch.autocast(self.device, torch.bfloat16) if self.program.amp else contextlib.nullcontext()
        with cast:
            loss = self.loss(self.model(*batch.inputs), batch.labels)
        loss.backward()
        self.optimizer.step()

    def timed(self, rounds: int, steps: int) -> float:
        """Median seconds per step over rounds of steps, each round ending with the GPU idle."""
        found = []
        for _ in range(rounds):
            self._wait()
            begin = time.perf_counter()
            for _ in range(steps):
                self.step()
            self._wait()
            found.append((time.perf_counter() - begin) / steps)
        return statistics.median(found)

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def close(self) -> None:
        """End the loader's workers before the next program is measured."""
        self.data = iter(())
        self.loader = None


class Decoded(torch.utils.data.Dataset[tuple[tuple[torch.Tensor, ...], torch.Tensor]]):
    """Whole batches that cost CPU time to make, as decoding and augmenting images does."""

    def __init__(self, make: Callable[[int], Batch], batch: int) -> None:
        self.make = make
        self.batch = batch

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        batch = self.make(self.batch)
        for _ in range(6):
            batch = Batch(
                tuple(part.clone() if part.is_floating_point() else part for part in batch.inputs), batch.labels
            )
            for part in batch.inputs:
                if part.is_floating_point():
                    part.sin_().add_(0.1).clamp_(-2, 2)
        return batch.inputs, batch.labels
