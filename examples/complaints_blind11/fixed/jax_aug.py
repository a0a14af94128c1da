"""Train a small conv net on 32x32 pictures in JAX, with random crop, flip and noise for each picture."""
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax, random

CLASSES, BATCH = 10, 64


def load(n=4096, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    base = rng.normal(size=(CLASSES, 32, 32, 3))
    x = base[y] + 0.8 * rng.normal(size=(n, 32, 32, 3))
    return x.astype(np.float32), y.astype(np.int32)


def init_params(key):
    shapes = {"c1": (3, 3, 3, 32), "c2": (3, 3, 32, 64), "c3": (3, 3, 64, 64), "fc": (64, CLASSES)}
    keys = random.split(key, len(shapes))
    return {
        name: random.normal(k, shape) * (2.0 / np.prod(shape[:-1])) ** 0.5
        for k, (name, shape) in zip(keys, shapes.items())
    }


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def forward(params, x):
    x = jax.nn.relu(conv(x, params["c1"]))
    x = jax.nn.relu(conv(x, params["c2"], 2))
    x = jax.nn.relu(conv(x, params["c3"], 2))
    return x.mean((1, 2)) @ params["fc"]


def augment(key, img):
    k1, k2, k3 = random.split(key, 3)
    padded = jnp.pad(img, ((4, 4), (4, 4), (0, 0)), mode="reflect")
    corner = random.randint(k1, (2,), 0, 9)
    img = lax.dynamic_slice(padded, (corner[0], corner[1], 0), (32, 32, 3))
    img = jnp.where(random.bernoulli(k2), img[:, ::-1], img)
    return img + 0.05 * random.normal(k3, img.shape)


@jax.jit
def augment_batch(key, images):
    return jax.vmap(augment)(random.split(key, len(images)), images)


optimizer = optax.sgd(0.05, momentum=0.9)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, x, y):
    def loss_fn(p):
        return optax.softmax_cross_entropy_with_integer_labels(forward(p, x), y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main(steps=40):
    x, y = load()
    key = random.PRNGKey(0)
    params = init_params(key)
    state = optimizer.init(params)
    rng = np.random.default_rng(1)
    start = time.time()
    for step in range(steps):
        take = rng.integers(0, len(y), BATCH)
        key, sub = random.split(key)
        batch = augment_batch(sub, x[take])
        params, state, loss = train_step(params, state, batch, y[take])
        if step % 10 == 9:
            print(f"step {step + 1} loss {float(loss):.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
