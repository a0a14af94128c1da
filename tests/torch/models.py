"""Deterministic programs whose operators differ: each returns a function that runs one training step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Step = Callable[[], None]


def _training(model: nn.Module, inputs: Callable[[], torch.Tensor], optimizer: type[torch.optim.Optimizer]) -> Step:
    optimize = optimizer(model.parameters(), lr=0.01)

    def step() -> None:
        optimize.zero_grad()
        model(inputs()).float().pow(2).mean().backward()
        optimize.step()

    return step


def mlp() -> Step:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return _training(model, lambda: torch.ones(8, 16), torch.optim.SGD)


def cnn() -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 7, 4)
    )
    return _training(model, lambda: torch.ones(4, 3, 16, 16), torch.optim.Adam)


def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    return _training(model, lambda: torch.ones(2, 5, 16), torch.optim.AdamW)


class Recommender(nn.Module):
    """Embeddings picked by index, with an index_select and a bincount that have no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 8)
        self.bags = nn.EmbeddingBag(50, 8, mode="sum")
        self.head = nn.Linear(16, 1)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        picked = self.table(index).sum(dim=1)
        both = torch.cat([picked, self.bags(index)], dim=1)
        order = torch.bincount(index.flatten(), minlength=50).argsort()[: both.shape[0]] % both.shape[0]
        return self.head(both.index_select(0, order))


def recommender() -> Step:
    return _training(Recommender(), lambda: torch.arange(24).reshape(6, 4) % 50, torch.optim.SGD)


class Checkpointed(nn.Module):
    """One block recomputed in backward the old way, one the new way."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.second = nn.Sequential(nn.Linear(16, 16), nn.Sigmoid())
        self.last = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = checkpoint(self.first, x.requires_grad_(), use_reentrant=True)
        x = checkpoint(self.second, x, use_reentrant=False)
        return self.last(x)


def checkpointed() -> Step:
    return _training(Checkpointed(), lambda: torch.ones(4, 16), torch.optim.SGD)


class Residual(nn.Module):
    """Two convolutions around which the input goes, halved in size as in a ResNet."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride=2, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def resnet() -> Step:
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
    model = nn.Sequential(stem, nn.MaxPool2d(3, 2, 1), Residual(8, 16), Residual(16, 32), head)
    return _training(model, lambda: torch.ones(2, 3, 32, 32), torch.optim.SGD)


class BertLayer(nn.Module):
    """Attention written out, as transformers' eager path does, and the norm after the addition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = (*x.shape[:2], self.heads, -1)
        query, key, value = (part(x).view(split).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, dim=-1)
        x = self.norm1(x + self.out((weights @ value).transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(8, 16)
        self.layers = nn.ModuleList(BertLayer(16, 2) for _ in range(2))
        self.classifier = nn.Linear(16, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.classifier(torch.tanh(x[:, 0]))


def bert() -> Step:
    return _training(Bert(), lambda: torch.arange(12).reshape(2, 6), torch.optim.AdamW)


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))


def _settled(step: Step) -> Step:
    """After the runs in which a graph is compiled, or torch.jit's executor specializes it."""
    for _ in range(3):
        step()
    return step


def scripted() -> Step:
    return _settled(_training(torch.jit.script(_perceptron()), lambda: torch.ones(8, 16), torch.optim.SGD))


def traced() -> Step:
    model = torch.jit.trace(_perceptron(), torch.ones(8, 16))
    return _settled(_training(model, lambda: torch.ones(8, 16), torch.optim.SGD))


def compiled() -> Step:
    model = torch.compile(_perceptron(), backend="aot_eager")
    return _settled(_training(model, lambda: torch.ones(8, 16), torch.optim.SGD))


_ALL = (mlp, cnn, transformer, recommender, checkpointed, resnet, bert, scripted, traced, compiled)
MODELS = {function.__name__: function for function in _ALL}
