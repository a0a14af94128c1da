"""Recorded with jax 0.10.2: three steps of a small model, with JAX's Python tracer off."""

import sys

import jax
import jax.numpy as jnp


def layer(weights, x):
    return jnp.tanh(x @ weights)


def loss_fn(weights, x):
    with jax.named_scope("tower"):
        for _ in range(2):
            x = layer(weights, x)
    return (x * x).mean()


@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(loss_fn)(weights, x)
    return weights - 0.1 * gradient, loss


def main():
    weights, x = jnp.eye(128), jnp.ones((256, 128))
    weights, loss = train_step(weights, x)
    loss.block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(sys.argv[1], profiler_options=options)
    for number in range(3):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            weights, loss = train_step(weights, x)
            with jax.profiler.TraceAnnotation("log"):
                float(loss)
    jax.profiler.stop_trace()


main()
