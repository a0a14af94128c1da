"""A training loop of Haiku: modules inside of modules, one of them used twice, and a function that is transformed."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

STEPS = 60


class Block(hk.Module):
    def __call__(self, x):
        h = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
        return x + hk.Linear(64, name="down")(jax.nn.gelu(hk.Linear(128, name="up")(h)))


class Model(hk.Module):
    def __call__(self, x):
        shared = Block(name="shared")
        return hk.Linear(10, name="head")(Block(name="last")(shared(shared(x))))


def forward(x):
    return Model(name="model")(x)


network = hk.without_apply_rng(hk.transform(forward))
optimizer = optax.sgd(1e-3)


def loss_fn(parameters, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(network.apply(parameters, x), y).mean()


@jax.jit
def train_step(parameters, state, x, y):
    loss, gradient = jax.value_and_grad(loss_fn)(parameters, x, y)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(parameters, updates), state, loss


def main():
    x, y = jnp.ones((128, 64)), jnp.arange(128) % 10
    parameters = jax.jit(network.init)(jax.random.key(0), x)
    state = optimizer.init(parameters)
    for _ in range(STEPS):
        parameters, state, loss = train_step(parameters, state, x, y)
    print(STEPS, float(loss))


main()
