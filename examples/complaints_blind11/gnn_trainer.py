"""Learn voltages on small power grids with message passing (JAX, optax). The Trainer is reusable."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (a, b)) * (2.0 / a) ** 0.5, "b": jnp.zeros(b)}
        for k, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]


def mlp(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


class Network:
    def __init__(self, hidden=64, rounds=1):
        self.hidden, self.rounds = hidden, rounds

    def init(self, key):
        k = jax.random.split(key, 2 + 2 * self.rounds)
        h = self.hidden
        return {
            "encode": init(k[0], (6, h)),
            "decode": init(k[1], (h, 1)),
            "edge": [init(k[2 + i], (2 * h, h)) for i in range(self.rounds)],
            "node": [init(k[2 + self.rounds + i], (2 * h, h)) for i in range(self.rounds)],
        }

    def apply(self, params, nodes, senders, receivers):
        h = mlp(params["encode"], nodes)
        for edge, node in zip(params["edge"], params["node"]):
            m = mlp(edge, jnp.concatenate([h[:, senders], h[:, receivers]], -1))
            total = jnp.zeros_like(h).at[:, receivers].add(m)
            h = h + mlp(node, jnp.concatenate([h, total], -1))
        return mlp(params["decode"], h)[..., 0]


class Trainer:
    def __init__(self, network, optimizer):
        self.network, self.optimizer = network, optimizer

    def start(self, key):
        self.params = self.network.init(key)
        self.state = self.optimizer.init(self.params)

    def training_step(self, batch):
        nodes, senders, receivers, target = batch

        def loss_fn(params):
            out = self.network.apply(params, nodes, senders, receivers)
            return jnp.mean((out - target) ** 2)

        def update(params, state, grads):
            updates, state = self.optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state

        loss, grads = jax.jit(jax.value_and_grad(loss_fn))(self.params)
        self.params, self.state = jax.jit(update)(self.params, self.state, grads)
        return float(loss)


def grids(n, buses=60, lines=150, seed=0):
    rng = np.random.default_rng(seed)
    senders, receivers = rng.integers(0, buses, (2, lines))
    for _ in range(n):
        nodes = rng.normal(size=(4, buses, 6)).astype(np.float32)
        target = nodes[..., 0] + 0.5 * np.roll(nodes[..., 1], 1, axis=1)
        yield nodes, senders, receivers, target.astype(np.float32)


def main(steps=30):
    trainer = Trainer(Network(), optax.adam(1e-3))
    trainer.start(jax.random.PRNGKey(0))
    start = time.time()
    for i, batch in enumerate(grids(steps)):
        loss = trainer.training_step(batch)
        if i % 10 == 9:
            print(f"step {i + 1} loss {loss:.4f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
