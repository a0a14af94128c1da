"""DQN-style training in JAX: transitions go to a replay buffer on the device, then one update."""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

OBS, ACTIONS, CAPACITY = 128, 8, 40_000


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def q_values(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


class ReplayBuffer:
    def __init__(self):
        self.obs = jnp.zeros((CAPACITY, OBS))
        self.action = jnp.zeros(CAPACITY, jnp.int32)
        self.reward = jnp.zeros(CAPACITY)
        self.size = self.head = 0

    def add(self, obs, action, reward):
        i = self.head
        self.obs = self.obs.at[i].set(obs)
        self.action = self.action.at[i].set(action)
        self.reward = self.reward.at[i].set(reward)
        self.head = (i + 1) % CAPACITY
        self.size = min(self.size + 1, CAPACITY)

    def sample(self, rng, n):
        idx = rng.integers(0, self.size, n)
        return self.obs[idx], self.action[idx], self.reward[idx]


opt = optax.adam(1e-3)


@jax.jit
def update(params, state, obs, action, reward):
    def loss_fn(p):
        q = jnp.take_along_axis(q_values(p, obs), action[:, None], 1)[:, 0]
        return jnp.mean(optax.huber_loss(q, reward))

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = opt.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


act = jax.jit(lambda p, o: jnp.argmax(q_values(p, o)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--envs", type=int, default=4)
    args = p.parse_args()
    rng = np.random.default_rng(0)
    params = init(jax.random.PRNGKey(0), [OBS, 512, 512, ACTIONS])
    state = opt.init(params)
    buffer = ReplayBuffer()
    t0 = time.time()
    for step in range(args.steps):
        for _ in range(args.envs):
            obs = rng.standard_normal(OBS, dtype=np.float32)
            action = int(act(params, obs)) if rng.random() > 0.2 else int(rng.integers(ACTIONS))
            buffer.add(obs, action, float(obs[action] > 0))
        params, state, loss = update(params, state, *buffer.sample(rng, 512))
        if step % 50 == 0:
            print(step, float(loss))
    print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")


if __name__ == "__main__":
    main()
