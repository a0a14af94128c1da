"""Four models for before/after pairs on a GPU, in plain torch: residual network, encoder, decoder, recommendation.

Each has a tiny form of the same structure, with which the scripts are rehearsed on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import nn


class Batch(NamedTuple):
    """Inputs of the model and integer labels, on the CPU."""

    inputs: tuple[torch.Tensor, ...]
    labels: torch.Tensor


@dataclass(frozen=True)
class Model:
    """How to build a model and its batches, and a batch size that fills a large GPU without exhausting it."""

    build: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    size: int
    build_tiny: Callable[[], nn.Module]
    batch_tiny: Callable[[int], Batch]
    tiny: int = 4
    convolutions: bool = False


class Bottleneck(nn.Module):
    """The residual block of ResNet-50 (He et al. 2016)."""

    def __init__(self, inner: int, outer: int, source: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(source, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip
        same = source == outer and stride == 1
        self.skip: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(source, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        )
        self.activation = nn.ReLU()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.activation(self.body(images) + self.skip(images))
        return out


def resnet(stages: Sequence[tuple[int, int, int]]) -> nn.Module:
    """A residual network of (inner width, blocks, stride) per stage."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    source = 64
    for inner, blocks, stride in stages:
        for number in range(blocks):
            layers.append(Bottleneck(inner, inner * 4, source, stride if number == 0 else 1))
            source = inner * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(source, 1000))


def resnet50() -> nn.Module:
    return resnet(((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)))


class Encoder(nn.Module):
    """An encoder of BERT-base size with a classification head."""

    def __init__(self, causal: bool = False, layers: int = 12, width: int = 768, vocabulary: int = 30_000) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(
            width, width // 64, width * 4, 0.1, "gelu", batch_first=True, norm_first=causal
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary if causal else 16)
        self.causal = causal

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        if self.causal:
            mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
            hidden = self.body(hidden, mask=mask, is_causal=True)
            logits: torch.Tensor = self.head(hidden).flatten(0, 1)
            return logits
        pooled: torch.Tensor = self.head(self.body(hidden).mean(dim=1))
        return pooled


class Recommender(nn.Module):
    """Embedding tables and two multi-layer perceptrons in the manner of DLRM (Naumov et al. 2019)."""

    def __init__(self, tables: int = 26, rows: int = 100_000, width: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(
            nn.Linear(pairs + width, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2)
        )
        chosen = torch.triu_indices(tables + 1, tables + 1, offset=1)
        self.rows: torch.Tensor
        self.columns: torch.Tensor
        self.register_buffer("rows", chosen[0])
        self.register_buffer("columns", chosen[1])

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        looked = [table(sparse[:, number]) for number, table in enumerate(self.tables)]
        stacked = torch.stack([bottom, *looked], dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.rows, self.columns]
        out: torch.Tensor = self.top(torch.cat([bottom, products], dim=1))
        return out


def _images(size: int, side: int = 224) -> Batch:
    return Batch((torch.randn(size, 3, side, side),), torch.randint(0, 1000, (size,)))


def _sentences(size: int, length: int = 128, vocabulary: int = 30_000) -> Batch:
    return Batch((torch.randint(0, vocabulary, (size, length)),), torch.randint(0, 16, (size,)))


def _text(size: int, length: int = 512, vocabulary: int = 30_000) -> Batch:
    tokens = torch.randint(0, vocabulary, (size, length + 1))
    return Batch((tokens[:, :-1],), tokens[:, 1:].flatten())


def _clicks(size: int, tables: int = 26, rows: int = 100_000) -> Batch:
    return Batch((torch.randn(size, 13), torch.randint(0, rows, (size, tables, 4))), torch.randint(0, 2, (size,)))


MODELS: dict[str, Model] = {
    "resnet50": Model(
        resnet50, _images, 64, lambda: resnet(((16, 1, 1), (32, 1, 2))), partial(_images, side=32), convolutions=True
    ),
    "encoder": Model(
        Encoder, _sentences, 64, partial(Encoder, layers=2, width=64, vocabulary=100),
        partial(_sentences, length=16, vocabulary=100),
    ),
    "decoder": Model(
        partial(Encoder, causal=True), _text, 16, partial(Encoder, causal=True, layers=2, width=64, vocabulary=100),
        partial(_text, length=16, vocabulary=100),
    ),
    "recommender": Model(
        Recommender, _clicks, 2048, partial(Recommender, tables=4, rows=100), partial(_clicks, tables=4, rows=100)
    ),
}  # fmt: skip
