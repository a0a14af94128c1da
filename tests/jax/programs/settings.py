"""Runs a function that JAX compiles, after one of: `limit N` and `short` set what JAX keeps of stacks, `clear` takes all
listeners away, `hook` puts a hook of its own in and prints how often it was called."""

import sys

import jax
import jax.numpy as jnp

RUNS = 40


def layer(x):
    return jnp.tanh(x @ x)


def model(x):
    return layer(layer(x))


@jax.jit
def before(x):
    return model(x) + 1


@jax.jit
def after(x):
    return model(x) * 2


@jax.jit
def last(x):
    return model(x) - 1


def main():
    x = jnp.full((96, 96), 0.01)
    before(x).block_until_ready()
    called = []
    way = sys.argv[1]
    if way == "limit":
        jax.config.update("jax_traceback_in_locations_limit", int(sys.argv[2]))
    elif way == "short":
        jax.config.update("jax_include_full_tracebacks_in_locations", False)
    elif way == "clear":
        from jax._src import monitoring  # public since 0.9

        monitoring.clear_event_listeners()
    elif way == "hook":
        from jax._src.lib import _jax

        state = _jax.config.Config("another_tool", None, include_in_jit_key=False)
        state.set_global(lambda *told: called.append(told[0].__name__))
        _jax.jax_jit.set_post_hook_state(state)
    for _ in range(RUNS):
        x = after(x)
    last(x).block_until_ready()
    print(RUNS, called.count("after"))


main()
