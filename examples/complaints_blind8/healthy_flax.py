"""Healthy: a convolutional classifier in flax with one jitted, donating training step."""
import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState


class Net(nn.Module):
    width: int = 16

    @nn.compact
    def __call__(self, x):
        for factor in (1, 2, 4):
            x = nn.Conv(self.width * factor, (3, 3), use_bias=False)(x)
            x = nn.relu(nn.GroupNorm(num_groups=8)(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = x.mean(axis=(1, 2))
        x = nn.relu(nn.Dense(128)(x))
        return nn.Dense(10)(x)


@partial(jax.jit, donate_argnums=0)
def train_step(state, images, labels):
    def loss_fn(params):
        scores = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def epoch_batches(images, labels, size, rng):
    order = rng.permutation(len(images))
    for start in range(0, len(order) - size + 1, size):
        rows = order[start : start + size]
        yield images[rows], labels[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    images = rng.normal(size=(2048, 32, 32, 3)).astype(np.float32)
    labels = rng.integers(0, 10, size=2048).astype(np.int32)

    net = Net()
    params = net.init(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))["params"]
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adamw(1e-3))
    started = time.perf_counter()
    for epoch in range(args.epochs):
        losses = []
        for x, y in epoch_batches(images, labels, args.batch_size, rng):
            state, loss = train_step(state, x, y)
            losses.append(loss)
        print(f"epoch {epoch}: loss {np.mean(jax.device_get(losses)):.3f}")
    count = args.epochs * (len(images) // args.batch_size)
    print(f"{(time.perf_counter() - started) / count * 1000:.0f} ms a step")


if __name__ == "__main__":
    main()
