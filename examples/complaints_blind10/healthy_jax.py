"""Train an autoencoder of spectra in JAX: one jitted step, donated state, batches gathered on the device."""
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, BATCH = 400, 128
SIZES = [512, 512, 256, 32, 256, 512, 512]


def init(key):
    keys = jax.random.split(key, len(SIZES) - 1)
    return [{"w": jax.random.normal(k, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)}
            for k, a, b in zip(keys, SIZES[:-1], SIZES[1:])]


def apply(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, key, data):
    key, sub = jax.random.split(key)
    batch = data[jax.random.randint(sub, (BATCH,), 0, data.shape[0])]
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((apply(p, batch) - batch) ** 2))(params)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, key, loss


def main():
    rng = np.random.default_rng(0)
    peaks = rng.uniform(0, 512, (8192, 4, 1))
    data = np.exp(-((np.arange(512) - peaks) ** 2) / 200).sum(1).astype(np.float32)
    data = jnp.asarray(data)
    params = init(jax.random.PRNGKey(0))
    state, key = tx.init(params), jax.random.PRNGKey(1)
    losses = []
    start = time.perf_counter()
    for step in range(STEPS):
        params, state, key, loss = train_step(params, state, key, data)
        losses.append(loss)
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {float(jnp.stack(losses).mean()):.4f}")
            losses.clear()
    jax.block_until_ready(params)
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.2f} ms a step")


if __name__ == "__main__":
    main()
