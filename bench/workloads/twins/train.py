"""One training step with plain SGD, the same in both frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RATE = 1e-3
Step = Callable[[], None]


def torch_step(model: Any, loss_of: Callable[[Any], Any]) -> Step:
    """`loss_of(model)` is the loss of the one batch."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()

    return step


def jax_step(weights: Any, loss_of: Callable[[Any], Any]) -> Step:
    """`loss_of(weights)` is the loss of the one batch; `weights` is a tree of arrays."""
    import jax

    @jax.jit
    def update(weights: Any) -> Any:
        slopes = jax.grad(loss_of)(weights)
        return jax.tree.map(lambda weight, slope: weight - RATE * slope, weights, slopes)

    wait_for: Callable[[Any], Any] = jax.block_until_ready
    held = [weights]

    def step() -> None:
        held[0] = wait_for(update(held[0]))

    return step


def jax_normal(*shape: int, seed: int = 0) -> Any:
    """Small random weights."""
    import jax

    return 0.05 * jax.random.normal(jax.random.key(seed + sum(shape)), shape)


def jax_cross_entropy(scores: Any, labels: Any) -> Any:
    """Mean over the batch, as torch's."""
    import jax
    import jax.numpy as jnp

    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1).mean()
