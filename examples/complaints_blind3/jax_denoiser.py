"""Denoising MLP in JAX, everything in one compiled step."""
import functools
import time

import jax
import jax.numpy as jnp
import optax

DIM, WIDTH, BATCH, TIMESTEPS = 128, 768, 512, 100
optimizer = optax.adamw(1e-3)
alphas = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, TIMESTEPS))


def init_params(key):
    sizes = [DIM + 32, WIDTH, WIDTH, WIDTH, DIM]
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (i, o)) / jnp.sqrt(i), "b": jnp.zeros(o)}
            for k, i, o in zip(keys, sizes[:-1], sizes[1:])]


def embed_time(t):
    freq = jnp.exp(jnp.linspace(0.0, 5.0, 16))
    angle = t[:, None] / TIMESTEPS * freq
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=1)


def predict(params, x, t):
    h = jnp.concatenate([x, embed_time(t)], axis=1)
    for layer in params[:-1]:
        h = jax.nn.silu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, key):
    time_key, noise_key = jax.random.split(key)
    t = jax.random.randint(time_key, (len(x),), 0, TIMESTEPS)
    noise = jax.random.normal(noise_key, x.shape)
    a = alphas[t][:, None]
    return jnp.mean((predict(params, jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise, t) - noise) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, data, key):
    pick_key, loss_key = jax.random.split(key)
    x = data[jax.random.randint(pick_key, (BATCH,), 0, len(data))]
    loss, grads = jax.value_and_grad(loss_fn)(params, x, loss_key)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    key = jax.random.PRNGKey(0)
    data = jax.random.normal(key, (20_000, DIM)) * jnp.linspace(0.2, 2.0, DIM)
    params = init_params(key)
    opt_state = optimizer.init(params)
    key, sub = jax.random.split(key)
    params, opt_state, loss = train_step(params, opt_state, data, sub)
    steps, begin = 120, time.perf_counter()
    for step in range(steps):
        key, sub = jax.random.split(key)
        params, opt_state, loss = train_step(params, opt_state, data, sub)
        if step % 30 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
