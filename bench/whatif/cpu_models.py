"""The training programs of the CPU pairs, written here so that nothing but torch is needed; cpu_unseen.py has more.

A `Program` says everything about one; two programs that differ in one field are a before/after pair. `Runner` takes
its steps and times them in turns.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from cpu_unseen import CLASSES, FAMILIES
from torch import nn
from torch.utils.checkpoint import checkpoint

Batch = tuple[torch.Tensor, torch.Tensor]
Samples = torch.utils.data.Dataset[Batch]

ROWS = 20_000
"""Rows of each embedding table of the recommender."""


@dataclass(frozen=True)
class Program:
    """One training program."""

    model: str
    batch: int
    optimizer: str = "sgd"
    fused: bool = False
    foreach: bool = False
    dropout: bool = False
    batch_norm: bool = True
    checkpointed: bool = False
    threads: int = 1
    keeps_memory: bool = True
    """False: glibc gives freed memory back to the system as it does by default, and every step pays for its pages."""
    workers: int | None = None
    """None: one batch in memory; else a DataLoader with that many workers."""
    decoding: int = 400
    """How much work one sample is to decode, where there is a DataLoader."""


class Block(nn.Module):
    """A pre-norm transformer block (causal attention)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop: nn.Module = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        batch, length, width = inputs.shape
        parts = self.qkv(self.norm1(inputs)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        inputs = inputs + self.drop(self.out(seen.transpose(1, 2).reshape(batch, length, width)))
        hidden: torch.Tensor = inputs + self.drop(self.down(nn.functional.gelu(self.up(self.norm2(inputs)))))
        return hidden


class Transformer(nn.Module):
    """Two blocks over 64 tokens; classifies the mean."""

    def __init__(self, dropout: float, checkpointed: bool, width: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width, 4, dropout) for _ in range(2))
        self.head = nn.Linear(width, CLASSES)
        self.checkpointed = checkpointed

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(tokens)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False) if self.checkpointed else block(hidden)
        scores: torch.Tensor = self.head(hidden.mean(1))
        return scores


class Recommender(nn.Module):
    """Eight embedding tables, summed bags of four rows each, and a small network on top."""

    def __init__(self, tables: int = 8, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, width, mode="sum") for _ in range(tables))
        self.top = nn.Sequential(nn.Linear(tables * width, 256), nn.ReLU(), nn.Linear(256, CLASSES))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        bags = [table(rows[:, number]) for number, table in enumerate(self.tables)]
        scores: torch.Tensor = self.top(torch.cat(bags, dim=1))
        return scores


class Recurrent(nn.Module):
    """An LSTM over 32 vectors; classifies the last state."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.body, self.head = nn.LSTM(64, width, batch_first=True), nn.Linear(width, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(inputs)[0][:, -1])
        return scores


class Mixer(nn.Module):
    """Two blocks that mix 64 patches, then channels."""

    def __init__(self, patches: int = 64, width: int = 128) -> None:
        super().__init__()
        self.across = nn.ModuleList(_two_layers(patches) for _ in range(2))
        self.within = nn.ModuleList(_two_layers(width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for at, (across, within) in enumerate(zip(self.across, self.within, strict=True)):
            inputs = inputs + across(self.norms[2 * at](inputs).transpose(1, 2)).transpose(1, 2)
            inputs = inputs + within(self.norms[2 * at + 1](inputs))
        scores: torch.Tensor = self.head(inputs.mean(1))
        return scores


def _two_layers(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


def _autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(1, 32, 9, stride=4, padding=4), nn.ELU(), nn.GroupNorm(4, 32),
        nn.Conv1d(32, 64, 9, padding=4), nn.ELU(),
        nn.ConvTranspose1d(64, 16, 8, stride=4, padding=2), nn.ELU(), nn.Flatten(), nn.Linear(16 * 512, CLASSES),
    )  # fmt: skip


HELD_OUT: Mapping[str, Callable[[], nn.Module]] = {"lstm": Recurrent, "mixer": Mixer, "autoencoder": _autoencoder}
"""Models that no factor was ever chosen with; the ranges were mended with their measurements in hand."""
_SAMPLES = {"lstm": (32, 64), "mixer": (64, 128), "autoencoder": (1, 512)}


def build(program: Program) -> nn.Module:
    """The model of a program, with the same weights each time."""
    torch.manual_seed(0)
    if program.model in ("mlp", "wide"):
        width = 1024 if program.model == "mlp" else 2048
        return nn.Sequential(
            nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
        )
    if program.model == "conv":
        norm: list[nn.Module] = [nn.BatchNorm2d(64)] if program.batch_norm else []
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), *norm, nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES),
        )  # fmt: skip
    if program.model == "transformer":
        return Transformer(0.1 if program.dropout else 0.0, program.checkpointed)
    if program.model == "recommender":
        return Recommender()
    if program.model in HELD_OUT:
        return HELD_OUT[program.model]()
    if program.model in FAMILIES:
        return FAMILIES[program.model].build(program.dropout, program.batch_norm)
    drop: list[nn.Module] = [nn.Dropout(0.3)] if program.dropout else []
    block = [layer for _ in range(4) for layer in (nn.Linear(768, 768), nn.GELU(), *drop)]
    return nn.Sequential(nn.Linear(512, 768), *block, nn.Linear(768, CLASSES))


class Encoded(Samples):
    """Samples that cost CPU time to decode, as images do."""

    def __init__(self, shape: tuple[int, ...], cost: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.shape, self.count = shape, int(torch.Size(shape).numel())
        raw = (torch.randn(self.count, generator=generator) * 8).to(torch.int8).numpy().tobytes()
        self.blob = zlib.compress(raw * max(1, cost * 512 // self.count), 6)

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Batch:
        data = torch.frombuffer(bytearray(zlib.decompress(self.blob)[: self.count]), dtype=torch.int8)
        return (data.float() / 8).view(self.shape), torch.tensor(index % CLASSES)


def _in_memory(program: Program, sample: tuple[int, ...]) -> Batch:
    inputs = torch.randn(program.batch, *sample)
    if program.model == "transformer":
        inputs = torch.randint(0, 1000, (program.batch, 64))
    elif program.model == "recommender":
        inputs = torch.randint(0, ROWS, (program.batch, 8, 4))
    return inputs, torch.randint(0, CLASSES, (program.batch,))


def batches(program: Program) -> Iterator[Batch]:
    """Batches without end."""
    sample: tuple[int, ...] = (3, 32, 32) if program.model == "conv" else _SAMPLES.get(program.model, (512,))
    family = FAMILIES.get(program.model)
    if family is not None:
        sample = family.sample
    if program.workers is None:
        if family is None:
            item = _in_memory(program, sample)
        else:
            item = family.inputs(program.batch), family.labels(program.batch)
        while True:
            yield item
    loader = torch.utils.data.DataLoader(
        Encoded(sample, program.decoding),
        batch_size=program.batch,
        num_workers=program.workers,
        persistent_workers=program.workers > 0,
        # as on Linux by default; a process that multiprocessing spawned would spawn its own children too
        multiprocessing_context="fork" if program.workers else None,
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
        self.optimizer = _optimizer(program, self.model)
        self.data = batches(program)

    def step(self) -> None:
        """One training step."""
        inputs, labels = next(self.data)
        self.optimizer.zero_grad()
        self.loss(self.model(inputs), labels).backward()
        self.optimizer.step()

    def turn(self, steps: int) -> float:
        """Mean seconds of a step, after as many steps as use up what was loaded while others had their turn."""
        for _ in range(2 + 3 * (self.program.workers or 0)):
            self.step()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - begin) / steps


def _optimizer(program: Program, model: nn.Module) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if program.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3, foreach=program.foreach)
    if program.optimizer == "momentum":
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=program.fused, foreach=program.foreach)
    if program.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=1e-3, fused=program.fused, foreach=program.foreach)
    kind = torch.optim.AdamW if program.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, lr=1e-4, fused=program.fused, foreach=program.foreach)
