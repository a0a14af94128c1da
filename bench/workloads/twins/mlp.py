"""Three layers on rows of features."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from workloads.twins.train import Step, jax_cross_entropy, jax_normal, jax_step, torch_step

BATCH, WIDTHS = 256, (512, 1024, 1024, 10)


def in_torch() -> Step:
    import torch
    from torch import nn

    layers: list[Any] = []
    for into, out in pairwise(WIDTHS):
        layers += [nn.Linear(into, out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    rows, labels = torch.randn(BATCH, WIDTHS[0]), torch.randint(0, WIDTHS[-1], (BATCH,))
    return torch_step(model, lambda model: nn.functional.cross_entropy(model(rows), labels))


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    weights = [{"w": jax_normal(into, out), "b": jnp.zeros(out)} for into, out in pairwise(WIDTHS)]
    rows, labels = jax_normal(BATCH, WIDTHS[0]), jnp.arange(BATCH) % WIDTHS[-1]

    def loss_of(weights: Any) -> Any:
        hidden = rows
        for layer in weights[:-1]:
            hidden = jax.nn.relu(hidden @ layer["w"] + layer["b"])
        return jax_cross_entropy(hidden @ weights[-1]["w"] + weights[-1]["b"], labels)

    return jax_step(weights, loss_of)
