"""Records `jax-RELEASE.xplane.pb.gz` with the release that runs it: three steps of a small model, two layers and a loop,
with JAX's Python tracer off.

    python record_jax.py . && python count_xspace.py jax-RELEASE.xplane.pb.gz
"""

import gzip
import sys
from pathlib import Path

import jax
import jax.numpy as jnp


def layer(weights, x):
    return jnp.tanh(x @ weights)


def loss_fn(weights, x):
    with jax.named_scope("tower"):
        for _ in range(2):
            x = layer(weights, x)
    return (x * x).mean()


def damped(weights, _):
    return jnp.sin(weights) * 0.99, None


@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(loss_fn)(weights, x)
    weights, _ = jax.lax.scan(damped, weights - 0.1 * gradient, None, length=4)
    return weights, loss


def session():
    """A session of the profiler without the Python tracer, in the ways that releases have had."""
    try:
        from jaxlib import _profiler as profiler  # 0.7 and later
    except ImportError:
        from jaxlib import xla_client

        profiler = xla_client.profiler
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = True
    return profiler.ProfilerSession(options)


def main():
    weights, x = jnp.eye(128), jnp.ones((256, 128))
    weights, loss = train_step(weights, x)
    loss.block_until_ready()
    recording = session()
    for number in range(3):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            weights, loss = train_step(weights, x)
            with jax.profiler.TraceAnnotation("log"):
                float(loss)
    weights.block_until_ready()
    data = recording.stop()
    place = Path(sys.argv[1], f"jax-{jax.__version__}.xplane.pb.gz")
    place.write_bytes(gzip.compress(data, mtime=0))


main()
