"""MLP-Mixer in plain JAX."""
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

PATCHES, DIM, LAYERS, CLASSES, BATCH = 64, 192, 6, 20, 64


def dense(key, n, m):
    return {"w": jax.random.normal(key, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}


def init(key):
    keys = jax.random.split(key, 4 * LAYERS + 2)
    layers = [{
        "t1": dense(keys[4 * i], PATCHES, 2 * PATCHES), "t2": dense(keys[4 * i + 1], 2 * PATCHES, PATCHES),
        "c1": dense(keys[4 * i + 2], DIM, 4 * DIM), "c2": dense(keys[4 * i + 3], 4 * DIM, DIM),
    } for i in range(LAYERS)]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *layers)
    return {"embed": dense(keys[-1], 48, DIM), "layers": stacked, "head": dense(keys[-2], DIM, CLASSES)}


def apply_dense(p, x):
    return x @ p["w"] + p["b"]


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def mixer_layer(x, p):
    y = norm(x).swapaxes(1, 2)
    x = x + apply_dense(p["t2"], jax.nn.gelu(apply_dense(p["t1"], y))).swapaxes(1, 2)
    return x + apply_dense(p["c2"], jax.nn.gelu(apply_dense(p["c1"], norm(x)))), None


def loss_fn(params, x, y):
    h = apply_dense(params["embed"], x)
    h, _ = jax.lax.scan(mixer_layer, h, params["layers"])
    logits = apply_dense(params["head"], norm(h).mean(1))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


tx = optax.adamw(1e-3)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((2048, PATCHES, 48), dtype=np.float32)
    labels = rng.integers(0, CLASSES, 2048)
    params = init(jax.random.PRNGKey(0))
    opt_state = tx.init(params)
    params, opt_state, loss = train_step(params, opt_state, images[:BATCH], labels[:BATCH])
    loss.block_until_ready()
    start = time.time()
    for step in range(1, 25):
        idx = rng.integers(0, len(images), BATCH)
        params, opt_state, loss = train_step(params, opt_state, images[idx], labels[idx])
        if step % 8 == 0:
            print(f"step {step} loss {float(loss):.3f} {(time.time() - start) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
