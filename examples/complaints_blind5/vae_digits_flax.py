import time
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Encoder(nn.Module):
    latents: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(512)(x))
        x = nn.relu(nn.Dense(256)(x))
        return nn.Dense(self.latents)(x), nn.Dense(self.latents)(x)


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, z):
        z = nn.relu(nn.Dense(256)(z))
        z = nn.relu(nn.Dense(512)(z))
        return nn.Dense(784)(z)


class VAE(nn.Module):
    latents: int = 20

    def setup(self):
        self.encoder = Encoder(self.latents)
        self.decoder = Decoder()

    def __call__(self, x, rng):
        mean, logvar = self.encoder(x)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(rng, mean.shape)
        return self.decoder(z), mean, logvar


model = VAE()
tx = optax.adamw(1e-3)


def loss_fn(params, batch, rng):
    logits, mean, logvar = model.apply({"params": params}, batch, rng)
    bce = optax.sigmoid_binary_cross_entropy(logits, batch).sum(-1).mean()
    kld = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1).mean()
    return bce + kld


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, batch, rng):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch, rng)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    data_rng = np.random.default_rng(0)
    centers = data_rng.random((10, 784)) < 0.3
    labels = data_rng.integers(0, 10, 16384)
    images = (centers[labels] ^ (data_rng.random((16384, 784)) < 0.05)).astype(np.float32)
    key = jax.random.PRNGKey(0)
    params = model.init(key, jnp.zeros((1, 784)), key)["params"]
    opt_state = tx.init(params)
    for epoch in range(8):
        start, losses = time.time(), []
        order = data_rng.permutation(len(images)).reshape(-1, 256)
        for idx in order:
            key, sub = jax.random.split(key)
            params, opt_state, loss = train_step(params, opt_state, images[idx], sub)
            losses.append(loss)
        mean_loss = float(jnp.stack(losses).mean())
        print(f"epoch {epoch + 1} elbo {-mean_loss:.2f} {time.time() - start:.2f}s {len(order)} steps")


if __name__ == "__main__":
    main()
