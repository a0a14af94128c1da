"""A network without any library around JAX, trained for a while; prints how often it ran what."""

import sys

import jax
import jax.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w)


def loss_fn(weights, x, y):
    with jax.named_scope("head"):
        h = layer(x, weights[0])
    for w in weights[1:]:
        h = layer(h, w)
    return jnp.mean((h - y) ** 2)


@jax.jit
def train_step(weights, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(weights, x, y)
    return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)], loss


@jax.jit
def evaluate(weights, x, y):
    return loss_fn(weights, x, y)


def main(steps):
    keys = jax.random.split(jax.random.key(0), 4)
    weights = [jax.random.normal(key, (128, 128)) / 12 for key in keys[:3]]
    x = jax.random.normal(keys[3], (256, 128))
    evaluations = 0
    for step in range(steps):
        weights, loss = train_step(weights, x, x)
        if step % 10 == 0:
            evaluate(weights, x, x)
            evaluations += 1
    print(steps, evaluations, float(loss))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
