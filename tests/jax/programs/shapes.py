"""Calls one compiled function with arrays of two sizes."""

import jax
import jax.numpy as jnp


@jax.jit
def scaled(x, factor):
    return jnp.sin(x) * factor


large = jnp.ones((16, 4))
small = jnp.ones((8, 4))
for _ in range(4):
    scaled(large, 2.0)
for _ in range(3):
    scaled(small, 2.0)
