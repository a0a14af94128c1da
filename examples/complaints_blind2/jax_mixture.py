# fmt: off
import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(params, x, y):
    h = jnp.tanh(x @ params["a"])
    h = jnp.tanh(h @ params["b"])
    return ((h @ params["c"] - y) ** 2).mean()


@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, grads), loss


def main():
    rng = np.random.default_rng(0)
    shapes = {"a": (256, 768), "b": (768, 768), "c": (768, 1)}
    params = {name: jnp.asarray(rng.normal(size=shape).astype(np.float32) * 0.05) for name, shape in shapes.items()}
    x, y = jnp.asarray(rng.normal(size=(512, 256)).astype(np.float32)), jnp.ones((512, 1))
    for i in range(200):
        params, loss = step(params, x, y)
        if i % 50 == 49:
            print(i, float(loss))


if __name__ == "__main__":
    main()
# ruff: noqa
