import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

N_STEPS = 20
DT = 0.1


def init_mlp(key, sizes):
    params = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (m, n)) / np.sqrt(m), "b": jnp.zeros(n)})
    return params


def vector_field(params, y):
    h = y
    for layer in params[:-1]:
        h = jnp.tanh(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def rk4_step(params, y, dt):
    k1 = vector_field(params, y)
    k2 = vector_field(params, y + dt / 2 * k1)
    k3 = vector_field(params, y + dt / 2 * k2)
    k4 = vector_field(params, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(params, y0):
    def body(y, _):
        y = rk4_step(params, y, DT)
        return y, y

    _, ys = jax.lax.scan(body, y0, None, length=N_STEPS)
    return jnp.concatenate([y0[None], ys])


def loss_fn(params, y0, target):
    return jnp.mean((odeint(params, y0) - target) ** 2)


optimizer = optax.adam(3e-3)


@jax.jit
def train_step(params, opt_state, y0, target):
    loss, grads = jax.value_and_grad(loss_fn)(params, y0, target)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def spirals(rng, n):
    y0 = rng.uniform(-2, 2, (n, 2))
    t = np.arange(N_STEPS + 1) * DT
    radius = np.exp(-0.1 * t)[:, None]
    angle = 2 * t[:, None]
    x = radius * (y0[:, 0] * np.cos(angle) - y0[:, 1] * np.sin(angle))
    y = radius * (y0[:, 0] * np.sin(angle) + y0[:, 1] * np.cos(angle))
    return y0.astype(np.float32), np.stack([x, y], -1).astype(np.float32)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    params = init_mlp(jax.random.PRNGKey(0), [2, 64, 64, 2])
    opt_state = optimizer.init(params)
    begin = time.time()
    for step in range(200):
        y0, target = spirals(rng, 32)
        params, opt_state, loss = train_step(params, opt_state, y0, target)
        if step in (0, 1) or (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {loss:.4f} elapsed {time.time() - begin:.2f}s")
