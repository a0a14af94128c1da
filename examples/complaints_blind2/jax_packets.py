# fmt: off
import jax
import jax.numpy as jnp
import numpy as np


def loss_fn(params, x, y):
    h = jnp.tanh(x @ params["a"]).mean(1)
    return ((h @ params["b"] - y) ** 2).mean()


@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss


def batches(rng, n):
    for i in range(n):
        length = 20 + i
        yield rng.normal(size=(16, length, 24)).astype(np.float32), rng.normal(size=(16, 1)).astype(np.float32)


def main():
    rng = np.random.default_rng(0)
    params = {"a": jnp.ones((24, 64)) * 0.1, "b": jnp.ones((64, 1)) * 0.1}
    for x, y in batches(rng, 40):
        params, loss = step(params, x, y)
    print(float(loss))


if __name__ == "__main__":
    main()
# ruff: noqa
