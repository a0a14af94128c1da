# fmt: off
import math
import time
import jax
import jax.numpy as jnp
import numpy as np

BATCH, SIDE = 40, 28
host_rng = np.random.default_rng(0)


def rotate(images):
    images = np.asarray(images)
    out = np.zeros_like(images)
    mid = (SIDE - 1) / 2
    for n in range(images.shape[0]):
        angle = float(host_rng.uniform(-0.3, 0.3))
        cos, sin = math.cos(angle), math.sin(angle)
        for i in range(SIDE):
            for j in range(SIDE):
                yy = round(mid + cos * (i - mid) - sin * (j - mid))
                xx = round(mid + sin * (i - mid) + cos * (j - mid))
                if 0 <= yy < SIDE and 0 <= xx < SIDE:
                    out[n, i, j] = images[n, yy, xx]
    return out


def init(key, sizes=(SIDE * SIDE, 512, 512, 10)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n))
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def logits_fn(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, images, labels):
    shape = jax.ShapeDtypeStruct((BATCH, SIDE, SIDE), jnp.float32)
    images = jax.lax.stop_gradient(images)
    x = jax.pure_callback(rotate, shape, images)
    logp = jax.nn.log_softmax(logits_fn(params, x.reshape(BATCH, -1)))
    return -jnp.take_along_axis(logp, labels[:, None], axis=1).mean()


@jax.jit
def train_step(params, images, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss


def main():
    rng = np.random.default_rng(1)
    digits = rng.random((2000, SIDE, SIDE), dtype=np.float32)
    labels = rng.integers(0, 10, 2000).astype(np.int32)
    params = init(jax.random.PRNGKey(0))
    t0 = time.perf_counter()
    for step in range(1, 201):
        rows = rng.integers(0, 2000, BATCH)
        params, loss = train_step(params, digits[rows], labels[rows])
        loss.block_until_ready()
        if step % 40 == 0:
            print(f"step {step} loss {float(loss):.3f} {(time.perf_counter() - t0) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
