"""Regress film thickness of a wafer from its spectrum with a residual network in Flax NNX."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

STEPS, BATCH, WIDTH, DEPTH = 500, 64, 64, 16


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, rngs=rngs)

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(self.norm(x))))


class Regressor(nnx.Module):
    def __init__(self, bands, rngs):
        self.stem = nnx.Linear(bands, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(WIDTH, rngs) for _ in range(DEPTH)])
        self.head = nnx.Linear(WIDTH, 8, rngs=rngs)

    def __call__(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_fn(model, spectra, thickness):
    return jnp.mean((model(spectra) - thickness) ** 2)


@nnx.jit
def train_step(model, optimizer, spectra, thickness):
    loss, grads = nnx.value_and_grad(loss_fn)(model, spectra, thickness)
    optimizer.update(model, grads)
    return loss


def make_data(n=4096, bands=48):
    rng = np.random.default_rng(1)
    thickness = rng.uniform(0.1, 1.0, (n, 8)).astype(np.float32)
    mix = rng.standard_normal((8, bands)).astype(np.float32)
    spectra = np.cos(thickness @ mix) + 0.01 * rng.standard_normal((n, bands))
    return spectra.astype(np.float32), thickness


def main():
    spectra, thickness = make_data()
    model = Regressor(spectra.shape[1], nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    rng = np.random.default_rng(2)
    order = rng.permutation(len(spectra))
    losses = []
    start = time.perf_counter()
    for step in range(STEPS):
        at = (step * BATCH) % len(spectra)
        rows = order[at:at + BATCH]
        loss = train_step(model, optimizer, spectra[rows], thickness[rows])
        losses.append(loss)
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {float(jnp.stack(losses[-100:]).mean()):.5f}")
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.2f} ms a step")


if __name__ == "__main__":
    main()
