"""One level down and up again with a connection across, as denoisers are built; learns to give back its input."""

from __future__ import annotations

from typing import Any

from workloads.twins.train import Step, jax_normal, jax_step, torch_step

BATCH, SIZE, WIDTH = 8, 32, 32


def in_torch() -> Step:
    import torch
    from torch import nn
    from torch.nn import functional

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter = nn.Conv2d(3, WIDTH, 3, padding=1, bias=False)
            self.down = nn.Conv2d(WIDTH, 2 * WIDTH, 3, stride=2, padding=1, bias=False)
            self.deep = nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1, bias=False)
            self.up = nn.Conv2d(2 * WIDTH, WIDTH, 3, padding=1, bias=False)
            self.leave = nn.Conv2d(2 * WIDTH, 3, 3, padding=1, bias=False)

        def forward(self, images: Any) -> Any:
            across = functional.silu(self.enter(images))
            deep = functional.silu(self.deep(functional.silu(self.down(across))))
            up = functional.silu(self.up(functional.interpolate(deep, scale_factor=2)))
            return self.leave(torch.cat((across, up), dim=1))

    images = torch.randn(BATCH, 3, SIZE, SIZE)
    return torch_step(UNet(), lambda model: functional.mse_loss(model(images), images))


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    weights = {
        "enter": jax_normal(WIDTH, 3, 3, 3),
        "down": jax_normal(2 * WIDTH, WIDTH, 3, 3),
        "deep": jax_normal(2 * WIDTH, 2 * WIDTH, 3, 3),
        "up": jax_normal(WIDTH, 2 * WIDTH, 3, 3),
        "leave": jax_normal(3, 2 * WIDTH, 3, 3),
    }
    images = jax_normal(BATCH, 3, SIZE, SIZE)

    def convolved(hidden: Any, weight: Any, stride: int = 1) -> Any:
        return jax.lax.conv_general_dilated(hidden, weight, (stride, stride), [(1, 1), (1, 1)])

    def loss_of(weights: Any) -> Any:
        across = jax.nn.silu(convolved(images, weights["enter"]))
        deep = jax.nn.silu(convolved(across, weights["down"], 2))
        deep = jax.nn.silu(convolved(deep, weights["deep"]))
        up = jax.nn.silu(convolved(deep.repeat(2, axis=2).repeat(2, axis=3), weights["up"]))
        out = convolved(jnp.concatenate((across, up), axis=1), weights["leave"])
        return ((out - images) ** 2).mean()

    return jax_step(weights, loss_of)
