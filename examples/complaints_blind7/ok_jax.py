"""MLP regression in JAX; healthy: one compiled step with donated state, loss read now and then."""
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


@partial(jax.jit, donate_argnums=(0, 1))
def step_fn(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = opt.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def main(epochs=4, batch=1024):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32 * batch, 128), dtype=np.float32)
    y = (np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]).astype(np.float32)
    params = init(jax.random.PRNGKey(0), [128, 768, 768, 1])
    state = opt.init(params)
    steps, t0 = 0, time.time()
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        for k in range(0, len(order), batch):
            idx = order[k:k + batch]
            params, state, loss = step_fn(params, state, x[idx], y[idx])
            steps += 1
        print(epoch, float(loss))
    print(f"{1000 * (time.time() - t0) / steps:.1f} ms/step")


if __name__ == "__main__":
    main()
