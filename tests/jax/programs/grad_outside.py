"""The gradient of a compiled function outside of any: forward and backward are programs of one name on one line."""

import jax
import jax.numpy as jnp


@jax.jit
def f(w, x):
    return jnp.tanh(x @ w).sum()


def main():
    w = jnp.ones((64, 64))
    for _ in range(100):
        w = w - 0.01 * jax.grad(f)(w, jnp.ones((32, 64)))


main()
