"""Numbers through layers, words through tables, and the products of both: a click is predicted."""

from __future__ import annotations

from typing import Any

from workloads.twins.train import Step, jax_normal, jax_step, torch_step

BATCH, NUMBERS, TABLES, ROWS, WIDTH = 512, 13, 8, 5000, 32


def in_torch() -> Step:
    import torch
    from torch import nn

    class Recommender(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bottom = nn.Sequential(nn.Linear(NUMBERS, 64), nn.ReLU(), nn.Linear(64, WIDTH), nn.ReLU())
            self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH) for _ in range(TABLES))
            pairs = (TABLES + 1) * TABLES // 2
            self.top = nn.Sequential(nn.Linear(WIDTH + pairs, 64), nn.ReLU(), nn.Linear(64, 1))

        def forward(self, numbers: Any, words: Any) -> Any:
            dense = self.bottom(numbers)
            vectors = torch.stack([dense, *(table(words[:, at]) for at, table in enumerate(self.tables))], dim=1)
            products = (vectors @ vectors.transpose(1, 2))[:, below[0], below[1]]
            return self.top(torch.cat((dense, products), dim=1)).squeeze(1)

    below = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
    numbers, words = torch.randn(BATCH, NUMBERS), torch.randint(0, ROWS, (BATCH, TABLES))
    clicks = torch.randint(0, 2, (BATCH,)).float()
    return torch_step(
        Recommender(), lambda model: nn.functional.binary_cross_entropy_with_logits(model(numbers, words), clicks)
    )


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    def linear(into: int, out: int) -> Any:
        return {"w": jax_normal(into, out), "b": jnp.zeros(out)}

    pairs = (TABLES + 1) * TABLES // 2
    weights = {
        "bottom": [linear(NUMBERS, 64), linear(64, WIDTH)],
        "tables": [jax_normal(ROWS, WIDTH, seed=at) for at in range(TABLES)],
        "top": [linear(WIDTH + pairs, 64), linear(64, 1)],
    }
    numbers = jax_normal(BATCH, NUMBERS)
    words = jax.random.randint(jax.random.key(1), (BATCH, TABLES), 0, ROWS)
    clicks = (jnp.arange(BATCH) % 2).astype(jnp.float32)
    below = jnp.tril_indices(TABLES + 1, -1)

    def apply(layer: Any, hidden: Any) -> Any:
        return hidden @ layer["w"] + layer["b"]

    def loss_of(weights: Any) -> Any:
        dense = numbers
        for layer in weights["bottom"]:
            dense = jax.nn.relu(apply(layer, dense))
        vectors = jnp.stack([dense, *(table[words[:, at]] for at, table in enumerate(weights["tables"]))], axis=1)
        products = (vectors @ vectors.swapaxes(1, 2))[:, below[0], below[1]]
        top = jnp.concatenate((dense, products), axis=1)
        scores = apply(weights["top"][1], jax.nn.relu(apply(weights["top"][0], top)))[:, 0]
        return (jnp.maximum(scores, 0) - scores * clicks + jnp.log1p(jnp.exp(-jnp.abs(scores)))).mean()

    return jax_step(weights, loss_of)
