"""A loop with one of each costly habit, and, with the argument `fixed`, the same loop without them."""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import leadline

FIXED = sys.argv[1:] == ["fixed"]
jax.config.update("jax_enable_x64", True)
SIZE = 256
TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(1024, 1024)), jnp.float32)
BATCH = np.ones((SIZE, SIZE), np.float32)
FACTOR = np.linspace(0, 1, SIZE)


def layer(weights, hidden):
    return jnp.tanh(hidden @ weights)


def deep(weights, hidden):
    if FIXED:
        return jax.lax.fori_loop(0, 60, lambda _, hidden: layer(weights, hidden), hidden)
    for _ in range(60):
        hidden = layer(weights, hidden)
    return hidden


@jax.jit
def shallow(weights, hidden):
    return deep(weights[:8, :8], hidden[:8, :8]).sum()


@jax.jit
def looked_up(table, row):
    return (table if FIXED else TABLE)[row].sum()


@partial(jax.jit, donate_argnums=(0, 1) if FIXED else ())
def train_step(weights, momentum, batch):
    loss, gradient = jax.value_and_grad(lambda weights: jnp.mean(layer(weights, batch) ** 2))(weights)
    if not FIXED:
        jax.debug.callback(lambda loss: None, loss)
    momentum = 0.9 * momentum + gradient
    return weights - 0.1 * momentum, momentum, loss


@partial(jax.jit, donate_argnums=() if FIXED else (0,))
def scaled(values, factor):
    return (values @ (values * factor)).sum()


def clip(values):
    low, high = values.min(), values.max()
    middle = (low + high) / 2
    wide = (high - low) / 2 + 1e-3
    return jnp.minimum(jnp.maximum((values - middle) / wide, -1.0), 1.0)


@partial(jax.jit, donate_argnums=(0, 1) if FIXED else ())
def update(weights, momentum, batch):
    gradient = batch.T @ layer(weights, batch)
    momentum = 0.9 * momentum + gradient
    return weights - 1e-6 * momentum, momentum


def main():
    weights, momentum = jnp.full((SIZE, SIZE), 0.01, jnp.float32), jnp.zeros((SIZE, SIZE), jnp.float32)
    others, state = jnp.full((SIZE, SIZE), 0.01, jnp.float32), jnp.zeros((SIZE, SIZE), jnp.float32)
    factor = jnp.asarray(FACTOR, jnp.float32) if FIXED else FACTOR
    held = jax.device_put(BATCH)
    losses, clipped = [], jax.jit(clip) if FIXED else clip
    for _ in range(30):
        batch = held if FIXED else jax.device_put(BATCH)
        weights, momentum, loss = train_step(weights, momentum, batch)
        others, state = update(others, state, batch)
        shallow(weights, batch)
        looked_up(TABLE, 3)
        scaled(others + 0, factor)
        clipped(others)
        losses.append(loss if FIXED else float(loss))
        leadline.step()
    print(float(losses[-1]))


main()
