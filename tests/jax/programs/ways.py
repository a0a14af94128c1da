"""Runs one function in every way that JAX has, on two threads too, and counts along. `nans`: with jax_debug_nans."""

import sys
import threading

import jax
import jax.numpy as jnp

if "nans" in sys.argv:
    jax.config.update("jax_debug_nans", True)


@jax.jit
def f(x):
    return jnp.tanh(x @ x).sum()


x = jnp.ones((8, 8)) / 8
many = jnp.ones((3, 8, 8)) / 8
counted = 0
for _ in range(40):  # the plain way
    f(x)
    counted += 1
ahead = f.lower(x).compile()
for _ in range(7):  # compiled ahead of time
    ahead(x)
    counted += 1
for _ in range(5):  # mapped, outside of any other compiled function
    jax.vmap(f)(many)
    counted += 1


def work():
    for _ in range(50):
        f(x)


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counted += 100


@jax.jit
def outer(x):
    return f(x) + jax.pure_callback(lambda value: value, jax.ShapeDtypeStruct((), x.dtype), x[0, 0])


for _ in range(6):
    outer(x)
jax.effects_barrier()
print(counted, 6)
