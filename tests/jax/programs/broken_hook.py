"""Compiled programs beside a hook of ours that fails: what it compares with is no number."""

import jax
import jax.numpy as jnp

from leadline.capture.providers.jax import runs

runs.LOOKS = "none"


@jax.jit
def train(x):
    return jnp.tanh(x @ x)


x = jnp.ones((8, 8))
for _ in range(5):
    x = train(x)
print(float(x.sum()))
