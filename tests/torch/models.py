"""Five deterministic programs whose operators differ: each returns a function that runs one training step."""

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


MODELS = {function.__name__: function for function in (mlp, cnn, transformer, recommender, checkpointed)}
