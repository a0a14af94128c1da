"""Learn the dynamics of a damped pendulum: roll a network out with lax.scan and match the trajectories."""
import time
from functools import partial

import jax
import jax.numpy as jnp
import optax


def init_params(key, dims):
    keys = jax.random.split(key, len(dims) - 1)
    return [{"w": jax.random.normal(k, (a, b)) / a ** 0.5, "b": jnp.zeros(b)}
            for k, a, b in zip(keys, dims, dims[1:])]


def field(params, state):
    h = state
    for layer in params[:-1]:
        h = jnp.tanh(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def true_field(state):
    theta, omega = state[..., 0], state[..., 1]
    return jnp.stack([omega, -9.81 * jnp.sin(theta) - 0.2 * omega], axis=-1)


def rollout(f, state, n_steps, dt=0.02):
    def rk4(s, _):
        k1 = f(s)
        k2 = f(s + dt / 2 * k1)
        k3 = f(s + dt / 2 * k2)
        k4 = f(s + dt * k3)
        s = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s, s
    return jax.lax.scan(rk4, state, None, length=n_steps)[1]


def loss_fn(params, start, target):
    predicted = rollout(partial(field, params), start, target.shape[0])
    return jnp.mean((predicted - target) ** 2)


def main():
    key = jax.random.PRNGKey(0)
    params = init_params(key, [2, 128, 128, 2])
    optimizer = optax.adam(optax.exponential_decay(3e-3, 20, 0.7))
    opt_state = optimizer.init(params)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params, opt_state, start, target):
        loss, grads = jax.value_and_grad(loss_fn)(params, start, target)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    make_target = jax.jit(lambda start: rollout(true_field, start, 40))
    n_epochs, steps = 4, 12
    for epoch in range(n_epochs):
        key, sub = jax.random.split(key)
        starts = jax.random.uniform(sub, (steps, 256, 2), minval=-1.5, maxval=1.5)
        targets = jax.vmap(make_target)(starts)
        t0 = time.time()
        for start, target in zip(starts, targets):
            params, opt_state, loss = train_step(params, opt_state, start, target)
        loss.block_until_ready()
        print(f"epoch {epoch} loss {loss:.5f} {(time.time() - t0) / steps * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
