"""A training loop of Flax and optax."""

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = Block(64)(x)
        return nn.Dense(10, name="head")(x)


model = Model()
optimizer = optax.adam(1e-3)


@jax.jit
def train_step(params, state, x, y):
    def loss_fn(params):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    x = jax.random.normal(jax.random.key(0), (128, 64))
    y = jnp.arange(128) % 10
    params = jax.jit(model.init)(jax.random.key(1), x)
    state = optimizer.init(params)
    for _ in range(200):
        params, state, loss = train_step(params, state, x, y)
    print(float(loss))


main()
