"""A small MLP-mixer in JAX and optax on synthetic patches."""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

PATCHES, WIDTH, CLASSES, BLOCKS = 36, 64, 10, 2


def dense(key, a, b):
    return {"w": jax.random.normal(key, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)}


def init(key):
    keys = iter(jax.random.split(key, 4 * BLOCKS + 2))
    blocks = []
    for _ in range(BLOCKS):
        blocks.append(
            {
                "scale1": jnp.ones(WIDTH),
                "scale2": jnp.ones(WIDTH),
                "token1": dense(next(keys), PATCHES, 64),
                "token2": dense(next(keys), 64, PATCHES),
                "channel1": dense(next(keys), WIDTH, 128),
                "channel2": dense(next(keys), 128, WIDTH),
            }
        )
    return {"stem": dense(next(keys), 48, WIDTH), "blocks": blocks, "head": dense(next(keys), WIDTH, CLASSES)}


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def norm(scale, x):
    return scale * (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def forward(params, x):
    x = apply(params["stem"], x)
    for block in params["blocks"]:
        y = norm(block["scale1"], x).swapaxes(1, 2)
        x = x + apply(block["token2"], jax.nn.gelu(apply(block["token1"], y))).swapaxes(1, 2)
        y = norm(block["scale2"], x)
        x = x + apply(block["channel2"], jax.nn.gelu(apply(block["channel1"], y)))
    return apply(params["head"], x.mean(axis=1))


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


class Trainer:
    def __init__(self, steps, lr=1e-3):
        self.params = init(jax.random.key(0))
        schedule = optax.warmup_cosine_decay_schedule(0.0, lr, 20, steps)
        self.tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.05))
        self.opt_state = self.tx.init(self.params)
        self.update = jax.jit(self.one_update)

    def one_update(self, params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, opt_state = self.tx.update(grads, opt_state, params)
        return loss, optax.apply_updates(params, updates), opt_state

    def step(self, x, y):
        loss, self.params, self.opt_state = self.update(self.params, self.opt_state, x, y)
        return loss


def batches(count, size):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(1024, PATCHES, 48)).astype(np.float32)
    labels = rng.integers(0, CLASSES, size=1024)
    for _ in range(count):
        rows = rng.integers(0, len(images), size=size)
        yield images[rows], labels[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    trainer = Trainer(args.steps)
    started = time.perf_counter()
    for number, (x, y) in enumerate(batches(args.steps, args.batch_size)):
        loss = trainer.step(x, y)
        if number % 50 == 0:
            print(f"step {number}: loss {float(loss):.3f}")
    jax.block_until_ready(trainer.params)
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.1f} ms a step")


if __name__ == "__main__":
    main()
