"""Three convolutions with normalised channels and pooling, on small images."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from workloads.twins.train import Step, jax_cross_entropy, jax_normal, jax_step, torch_step

BATCH, SIZE, CHANNELS, CLASSES = 32, 32, (3, 32, 64, 128), 10


def in_torch() -> Step:
    import torch
    from torch import nn

    layers: list[Any] = []
    for into, out in pairwise(CHANNELS):
        layers += [nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
    flat = CHANNELS[-1] * (SIZE // 8) ** 2
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, CLASSES))
    images, labels = torch.randn(BATCH, CHANNELS[0], SIZE, SIZE), torch.randint(0, CLASSES, (BATCH,))
    return torch_step(model, lambda model: nn.functional.cross_entropy(model(images), labels))


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    blocks = [
        {"w": jax_normal(out, into, 3, 3), "scale": jnp.ones(out), "shift": jnp.zeros(out)}
        for into, out in pairwise(CHANNELS)
    ]
    weights = {"blocks": blocks, "head": jax_normal(CHANNELS[-1] * (SIZE // 8) ** 2, CLASSES)}
    images, labels = jax_normal(BATCH, CHANNELS[0], SIZE, SIZE), jnp.arange(BATCH) % CLASSES

    def block_of(hidden: Any, block: Any) -> Any:
        hidden = jax.lax.conv_general_dilated(hidden, block["w"], (1, 1), "SAME")
        mean, spread = hidden.mean((0, 2, 3), keepdims=True), hidden.var((0, 2, 3), keepdims=True)
        hidden = (hidden - mean) / jnp.sqrt(spread + 1e-5)
        hidden = jax.nn.relu(hidden * block["scale"][None, :, None, None] + block["shift"][None, :, None, None])
        return jax.lax.reduce_window(hidden, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss_of(weights: Any) -> Any:
        hidden = images
        for block in weights["blocks"]:
            hidden = block_of(hidden, block)
        return jax_cross_entropy(hidden.reshape(BATCH, -1) @ weights["head"], labels)

    return jax_step(weights, loss_of)
