"""A loop as in many tutorials: the gradient of a jitted loss, taken outside of jit, and an update leaf by leaf."""

import jax
import jax.numpy as jnp
import numpy as np


def init(sizes):
    keys = jax.random.split(jax.random.key(0), len(sizes))
    return [
        (jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:], strict=False)
    ]


@jax.jit
def loss_of(params, inputs):
    for weight, bias in params:
        inputs = jnp.tanh(inputs @ weight + bias)
    return inputs.mean()


def main():
    params = init([8, 16, 12, 4, 1])
    inputs = np.ones((5, 8), np.float32)
    for _ in range(40):
        _, gradients = jax.value_and_grad(loss_of)(params, inputs)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


main()
