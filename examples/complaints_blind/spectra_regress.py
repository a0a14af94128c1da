# fmt: off
import time
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np


def init(key, sizes=(600, 1024, 1024, 8)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (m, n)) * (2.0 / m) ** 0.5, "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, velocity, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree_util.tree_map(lambda p, v: p - 1e-3 * v, params, velocity)
    return params, velocity, loss


def main():
    rng = np.random.default_rng(0)
    spectra = rng.standard_normal((8192, 600), dtype=np.float32)
    conc = np.abs(spectra[:, :8])
    params = init(jax.random.PRNGKey(0))
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    params, velocity, loss = train_step(params, velocity, spectra[:256], conc[:256])
    loss.block_until_ready()
    t0 = time.perf_counter()
    for step in range(1, 211):
        rows = rng.integers(0, len(spectra), 256)
        params, velocity, loss = train_step(params, velocity, spectra[rows], conc[rows])
        if step % 30 == 0:
            print(f"step {step} mse {float(loss):.4f} {(time.perf_counter() - t0) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
