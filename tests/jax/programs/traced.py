"""Steps of a program whose operations and operands are known: `plain`, `loop`, `ahead` or `torch`."""

import sys

import jax
import jax.numpy as jnp

import leadline


@jax.jit
def chain(x):
    left = jnp.sin(x) @ x
    right = jnp.cos(x) @ x
    return left @ right


@jax.jit
def loop(x):
    return jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(y) @ x, x)


def main(way):
    x = jnp.ones((256, 256)) / 256
    program = loop if way == "loop" else chain
    for _ in range(6):
        y = program(x)
        if way != "ahead":
            y.block_until_ready()
        if way == "torch":
            weight = torch.ones(64, 64, requires_grad=True)
            torch.sin(weight @ weight).sum().backward()
        leadline.step()
    y.block_until_ready()


if sys.argv[1] == "torch":
    import torch
main(sys.argv[1])
