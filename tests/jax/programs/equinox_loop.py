"""A training loop of Equinox: filtered transforms, optax, modules in a list and one that is mapped over rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

STEPS = 60


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, key):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(width)
        self.up = eqx.nn.Linear(width, 2 * width, key=first)
        self.down = eqx.nn.Linear(2 * width, width, key=second)

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(self.norm(x))))


class Model(eqx.Module):
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, width, key):
        *keys, last = jax.random.split(key, 3)
        self.blocks = [Block(width, one) for one in keys]
        self.head = eqx.nn.Linear(width, 10, key=last)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@eqx.filter_value_and_grad
def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


optimizer = optax.sgd(1e-3)


@eqx.filter_jit
def train_step(model, state, x, y):
    loss, gradient = loss_fn(model, x, y)
    updates, state = optimizer.update(gradient, state, model)
    return eqx.apply_updates(model, updates), state, loss


def main():
    model = eqx.filter_jit(Model)(64, jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    x, y = jnp.ones((128, 64)), jnp.arange(128) % 10
    for _ in range(STEPS):
        model, state, loss = train_step(model, state, x, y)
    print(STEPS, float(loss))


main()
