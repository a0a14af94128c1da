"""One small function for each transform of JAX, each run `RUNS` times; `TURNS` is how often its loop turns."""

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas
from jax.sharding import Mesh, PartitionSpec

try:
    from jax import shard_map
except ImportError:  # up to 0.7
    from jax.experimental.shard_map import shard_map

RUNS, TURNS = 30, 5


def cell(x, w):
    return jnp.tanh(x @ w)


@jax.jit
def scanned(weights, x):
    def loss(weights):
        return jax.lax.scan(lambda state, w: (cell(state, w), None), x, weights)[0].sum()

    return jax.grad(loss)(weights)


@jax.jit
def looped(w, x):
    def body(state):
        return state[0] + 1, cell(state[1], w)

    def unfinished(state):
        return (state[0] < TURNS) & (jnp.max(state[1]) < 100.0)

    return jax.lax.while_loop(unfinished, body, (0, x))[1]


def positive(operand):
    return cell(*operand)


def negative(operand):
    return -operand[0]


@jax.jit
def chosen(x, w):
    def loss(w):
        return jax.lax.cond(x[0, 0] > 0, positive, negative, (x, w)).sum()

    return jax.grad(loss)(w)


def per_device(rows, w):
    return jax.lax.psum(cell(rows, w), "data")


mesh = Mesh(np.array(jax.devices()), ("data",))
split = PartitionSpec("data")


@jax.jit
def sharded(x, w):
    return shard_map(per_device, mesh=mesh, in_specs=(split, PartitionSpec()), out_specs=PartitionSpec())(x, w)


@jax.custom_vjp
def clipped(x, w):
    return cell(x, w)


def clipped_forward(x, w):
    return clipped(x, w), (x, w)


def clipped_backward(kept, gradient):
    x, w = kept
    small = jnp.clip(gradient, -1.0, 1.0)
    return small @ w.T, x.T @ small


clipped.defvjp(clipped_forward, clipped_backward)


@jax.jit
def custom(x, w):
    return jax.grad(lambda w: (clipped(x, w) ** 2).sum())(w)


@jax.jit
def saved(x, w):
    block = jax.checkpoint(lambda x, w: cell(cell(x, w), w))
    return jax.grad(lambda w: (block(x, w) ** 2).sum())(w)


@jax.jit
def mapped(many, w):
    return jax.vmap(cell, in_axes=(0, None))(many, w)


def halved_kernel(x_ref, out_ref):
    out_ref[...] = jnp.tanh(x_ref[...]) * 0.5


@jax.jit
def halved(x):
    return pallas.pallas_call(halved_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)


def main():
    x, w = jnp.full((96, 96), 0.01), jnp.full((96, 96), 0.02)
    weights, many = jnp.stack([w] * TURNS), jnp.stack([x] * 3)
    for _ in range(RUNS):
        scanned(weights, x)
        looped(w, x)
        chosen(x, w)
        sharded(x, w)
        custom(x, w)
        saved(x, w)
        mapped(many, w)
        halved(x).block_until_ready()
    print(RUNS, TURNS)


main()
