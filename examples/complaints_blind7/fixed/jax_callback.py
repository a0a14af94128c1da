"""Segmentation in JAX with a distance-weighted loss; the distance map comes from SciPy through a callback."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import ndimage

BATCH, SIDE = 8, 96


def init(key):
    shapes = [(3, 3, 1, 16), (3, 3, 16, 32), (3, 3, 32, 16), (3, 3, 16, 1)]
    return [jax.random.normal(k, s) * (2 / (9 * s[2])) ** 0.5 for k, s in zip(jax.random.split(key, 4), shapes)]


def net(params, x):
    for i, w in enumerate(params):
        x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        if i + 1 < len(params):
            x = jax.nn.relu(x)
    return x[..., 0]


def distance_map(mask):
    mask = np.asarray(mask)
    out = np.empty(mask.shape, np.float32)
    for i, m in enumerate(mask):
        out[i] = ndimage.distance_transform_edt(m > 0.5) + ndimage.distance_transform_edt(m <= 0.5)
    return 1.0 + np.exp(-out / 5.0).astype(np.float32)


def loss_fn(params, image, mask, weight):
    logits = net(params, image)
    return jnp.mean(weight * optax.sigmoid_binary_cross_entropy(logits, mask))


opt = optax.adamw(1e-3)


@jax.jit
def train_step(params, state, image, mask, weight):
    loss, grads = jax.value_and_grad(loss_fn)(params, image, mask, weight)
    updates, state = opt.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def make_data(n, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    masks = np.zeros((n, SIDE, SIDE), np.float32)
    for i in range(n):
        for _ in range(4):
            cy, cx, r = rng.uniform(10, SIDE - 10), rng.uniform(10, SIDE - 10), rng.uniform(4, 14)
            masks[i][(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1
    images = masks[..., None] + 0.4 * rng.standard_normal((n, SIDE, SIDE, 1)).astype(np.float32)
    return images.astype(np.float32), masks


def main(epochs=3):
    images, masks = make_data(128)
    weights = distance_map(masks)
    params = init(jax.random.PRNGKey(0))
    state = opt.init(params)
    rng = np.random.default_rng(1)
    steps = 0
    t0 = time.time()
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for k in range(0, len(order), BATCH):
            idx = order[k:k + BATCH]
            params, state, loss = train_step(params, state, images[idx], masks[idx], weights[idx])
            steps += 1
        print(epoch, float(loss))
    print(f"{1000 * (time.time() - t0) / steps:.1f} ms/step")


if __name__ == "__main__":
    main()
