"""A variational autoencoder in JAX: one jitted step, data on the device, loss fetched once an epoch."""
import functools
import time

import jax
import jax.numpy as jnp
import optax

DIM, LATENT, BATCH = 784, 16, 256


def dense(key, a, b):
    return {"w": jax.random.normal(key, (a, b)) * (1.0 / a) ** 0.5, "b": jnp.zeros(b)}


def init(key):
    k = jax.random.split(key, 4)
    return {"e1": dense(k[0], DIM, 768), "e2": dense(k[1], 768, 2 * LATENT),
            "d1": dense(k[2], LATENT, 768), "d2": dense(k[3], 768, DIM)}


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def loss_fn(params, key, x):
    mean, logvar = jnp.split(apply(params["e2"], jax.nn.gelu(apply(params["e1"], x))), 2, axis=-1)
    z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
    logits = apply(params["d2"], jax.nn.gelu(apply(params["d1"], z)))
    recon = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
    kl = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1)
    return (recon + kl).mean()


optimizer = optax.adam(1e-3)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, key, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, key, x)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main(epochs=8):
    key = jax.random.PRNGKey(0)
    data = jax.random.bernoulli(key, 0.3, (BATCH * 30, DIM)).astype(jnp.float32)
    params = init(jax.random.fold_in(key, 1))
    state = optimizer.init(params)
    for epoch in range(epochs):
        start = time.time()
        order = jax.random.permutation(jax.random.fold_in(key, 100 + epoch), len(data)).reshape(-1, BATCH)
        for i, take in enumerate(order):
            params, state, loss = train_step(params, state, jax.random.fold_in(key, epoch * 1000 + i), data[take])
        print(f"epoch {epoch} loss {float(loss):.2f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
