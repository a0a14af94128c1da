"""Healthy: a VAE in flax, one jitted step, data kept on the device."""
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

BATCH, PIXELS, LATENT = 128, 784, 16


class VAE(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        h = nn.gelu(nn.Dense(512)(x))
        h = nn.gelu(nn.Dense(512)(h))
        mean, logvar = nn.Dense(LATENT)(h), nn.Dense(LATENT)(h)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
        h = nn.gelu(nn.Dense(512)(z))
        h = nn.gelu(nn.Dense(512)(h))
        return nn.Dense(PIXELS)(h), mean, logvar


model = VAE()
optimizer = optax.adam(1e-3)


def loss_fn(params, x, key):
    logits, mean, logvar = model.apply(params, x, key)
    recon = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
    kl = 0.5 * (jnp.exp(logvar) + mean**2 - 1 - logvar).sum(-1)
    return (recon + kl).mean()


@jax.jit
def train_epoch(params, opt_state, data, key):
    """All steps of one epoch in a scan: one dispatch an epoch."""
    def step(carry, inputs):
        params, opt_state = carry
        x, key = inputs
        loss, grads = jax.value_and_grad(loss_fn)(params, x, key)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    k_perm, k_step = jax.random.split(key)
    order = jax.random.permutation(k_perm, len(data))
    batches = data[order].reshape(-1, BATCH, PIXELS)
    carry, losses = jax.lax.scan(step, (params, opt_state), (batches, jax.random.split(k_step, len(batches))))
    return *carry, losses.mean()


def main(epochs=40):
    key = jax.random.PRNGKey(0)
    key, k_data, k_init = jax.random.split(key, 3)
    data = (jax.random.uniform(k_data, (20 * BATCH, PIXELS)) < 0.3).astype(jnp.float32)
    params = model.init(k_init, data[:2], key)
    opt_state = optimizer.init(params)
    history = []
    for _ in range(epochs):
        key, sub = jax.random.split(key)
        params, opt_state, loss = train_epoch(params, opt_state, data, sub)
        history.append(loss)
    print("first and last epoch:", [round(float(x), 3) for x in (history[0], history[-1])])


if __name__ == "__main__":
    main()
