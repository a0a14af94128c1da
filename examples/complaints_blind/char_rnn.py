# fmt: off
import time
import jax
import jax.numpy as jnp
import numpy as np

TEXT = ("it was the best of times it was the worst of times it was the age of wisdom "
        "it was the age of foolishness it was the epoch of belief ") * 40
CHARS = sorted(set(TEXT))
DATA = np.array([CHARS.index(c) for c in TEXT], dtype=np.int32)
V, H, T, B = len(CHARS), 128, 5, 64


def init_params(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "emb": jax.random.normal(k1, (V, H)) * 0.1,
        "w": jax.random.normal(k2, (2 * H, 2 * H)) * 0.1,
        "b": jnp.zeros(2 * H),
        "out": jax.random.normal(k3, (H, V)) * 0.1,
    }


def cell(params, h, x):
    both = jnp.concatenate([params["emb"][x], h], axis=-1)
    z = both @ params["w"] + params["b"]
    gate, cand = jnp.split(z, 2, axis=-1)
    gate = jax.nn.sigmoid(gate)
    return gate * h + (1 - gate) * jnp.tanh(cand)


def loss_fn(params, x, y):
    h = jnp.zeros((x.shape[0], H))
    total = 0.0
    for t in range(T):
        h = cell(params, h, x[:, t])
        logp = jax.nn.log_softmax(h @ params["out"])
        total = total - jnp.take_along_axis(logp, y[:, t:t + 1], axis=1).mean()
    return total / T


def sgd(params, grads, lr):
    return jax.tree_util.tree_map(lambda p, g: p - lr * jnp.clip(g, -1, 1), params, grads)


def batch(rng):
    starts = rng.integers(0, len(DATA) - T - 1, B)
    x = np.stack([DATA[s:s + T] for s in starts])
    y = np.stack([DATA[s + 1:s + T + 1] for s in starts])
    return jnp.asarray(x), jnp.asarray(y)


def main():
    rng = np.random.default_rng(0)
    params = init_params(jax.random.PRNGKey(0))
    t0 = time.perf_counter()
    for step in range(1, 61):
        x, y = batch(rng)
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        params = sgd(params, grads, 0.5)
        if step % 10 == 0:
            print(f"step {step} loss {float(loss):.3f} {(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
