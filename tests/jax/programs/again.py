"""Functions that are compiled again and again, each for a reason of its own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import leadline


@partial(jax.jit, static_argnums=1)
def powered(values, number):
    return values**number


@jax.jit
def summed(values):
    return values.sum()


@jax.jit
def scaled(tree, factor):
    return tree["values"] * factor


@jax.jit
def added(value):
    return value + 1


def main():
    values = jnp.ones((8, 8))
    for turn in range(6):
        powered(values, turn + 2)
        jax.jit(lambda values: values * 2)(values)
        summed(np.ones((turn + 2, 8), np.float32))  # made by NumPy: JAX would compile the making for each shape as well
        scaled({"values": values, **{f"other{other}": values for other in range(turn)}}, 2.0)
        leadline.step()
    for value in (1.0, values[0, 0], jnp.asarray(1.0, jnp.bfloat16)):
        added(value)


main()
