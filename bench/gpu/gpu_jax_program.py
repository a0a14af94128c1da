"""A small transformer that JAX trains on whatever device it has: a scan over layers, gradients and momentum.

    gpu_jax_program.py STEPS

The last line printed is a JSON object: `step_ms`, the mean of STEPS steps after five more, and `device`.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

WIDTH, LAYERS = 256, 4
Tree = dict[str, Any]


def norm(x: jax.Array) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)


def attention(queries: jax.Array, keys: jax.Array, values: jax.Array) -> Any:
    scores = jnp.einsum("bqd,bkd->bqk", queries, keys) / 8.0
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, axis=-1), values)


def block(x: jax.Array, w: Tree) -> Any:
    h = norm(x)
    x = x + attention(h @ w["q"], h @ w["k"], h @ w["v"])
    return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]


def loss_of(weights: Tree, x: jax.Array, y: jax.Array) -> Any:
    x, _ = jax.lax.scan(lambda x, w: (block(x, w), None), x, weights["layers"])
    return jnp.mean((x @ weights["out"] - y) ** 2)


@jax.jit
def train_step(weights: Tree, momentum: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, Tree, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda w, m: w - 1e-3 * m, weights, momentum), momentum, loss


Step = Callable[[], None]
Timed = Callable[[Step, int], float]


def workload() -> tuple[Step, Timed]:
    """A step that goes on from the one before, and a function that tells its seconds over so many of them."""
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def made(*shape: int) -> jax.Array:
        return 0.02 * jax.random.normal(next(keys), shape)

    layers = {name: made(LAYERS, WIDTH, WIDTH) for name in "qkv"}
    layers |= {"up": made(LAYERS, WIDTH, 4 * WIDTH), "down": made(LAYERS, 4 * WIDTH, WIDTH)}
    weights: Tree = {"layers": layers, "out": made(WIDTH, WIDTH)}
    momentum = jax.tree.map(jnp.zeros_like, weights)
    x, y = made(8, 128, WIDTH), made(8, 128, WIDTH)
    state = (weights, momentum, jnp.zeros(()))

    def step() -> None:
        nonlocal state
        state = train_step(state[0], state[1], x, y)

    def timed(step: Step, steps: int) -> float:
        state[2].block_until_ready()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        state[2].block_until_ready()
        return (time.perf_counter() - begin) / steps

    return step, timed


def main(steps: int) -> None:
    step, timed = workload()
    timed(step, 5)
    taken_s = timed(step, steps)
    print(json.dumps({"step_ms": taken_s * 1e3, "device": jax.devices()[0].device_kind, "jax": jax.__version__}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
