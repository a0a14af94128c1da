"""A training loop of flax nnx, with a Pallas kernel that is interpreted."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.experimental import pallas


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(x)))


class Model(nnx.Module):
    def __init__(self, width, rngs):
        self.first = Block(width, rngs)
        self.second = Block(width, rngs)
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(self.second(self.first(x)))


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    return loss, grads


def scale_kernel(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2.0


@jax.jit
def scaled(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(scale_kernel, out_shape=shape, interpret=True)(x)


def main():
    model = Model(64, nnx.Rngs(0))
    x, y = jnp.ones((128, 64)), jnp.arange(128) % 10
    for _ in range(60):
        loss, _ = train_step(model, scaled(x), y)
    print(float(loss))


main()
