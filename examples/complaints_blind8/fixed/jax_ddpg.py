"""DDPG for a batch of pendulums in JAX, with a replay buffer of arrays."""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

OBS, ACT, CAPACITY = 64, 4, 60_000


class Pendulums:
    def __init__(self, count):
        self.rng = np.random.default_rng(0)
        self.mix = self.rng.normal(size=(OBS, OBS)).astype(np.float32) / np.sqrt(OBS)
        self.push = self.rng.normal(size=(ACT, OBS)).astype(np.float32)
        self.state = self.rng.normal(size=(count, OBS)).astype(np.float32)

    def step(self, action):
        self.state = np.tanh(self.state @ self.mix + 0.3 * action @ self.push)
        return self.state, -np.square(self.state).mean(axis=1)


def init_mlp(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)} for k, a, b in zip(keys, sizes, sizes[1:])
    ]


def mlp(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def actor(params, obs):
    return jnp.tanh(mlp(params, obs))


def critic(params, obs, act):
    return mlp(params, jnp.concatenate([obs, act], axis=-1))[..., 0]


def loss(params, target, batch):
    future = critic(target["critic"], batch["next_obs"], actor(target["actor"], batch["next_obs"]))
    wanted = batch["reward"] + 0.98 * future
    value = critic(params["critic"], batch["obs"], batch["action"])
    frozen = jax.lax.stop_gradient(params["critic"])
    policy = critic(frozen, batch["obs"], actor(params["actor"], batch["obs"]))
    return jnp.square(value - jax.lax.stop_gradient(wanted)).mean() - policy.mean()


optimizer = optax.adam(3e-4)
act = jax.jit(actor)


@jax.jit
def learn(params, target, opt_state, batch):
    value, grads = jax.value_and_grad(loss)(params, target, batch)
    updates, opt_state = optimizer.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    target = optax.incremental_update(params, target, 0.01)
    return params, target, opt_state, value


class Replay:
    def __init__(self):
        self.data = {
            "obs": np.zeros((CAPACITY, OBS), np.float32),
            "next_obs": np.zeros((CAPACITY, OBS), np.float32),
            "action": np.zeros((CAPACITY, ACT), np.float32),
            "reward": np.zeros(CAPACITY, np.float32),
        }
        self.count = 0
        self.rng = np.random.default_rng(1)

    def add(self, **rows):
        where = (self.count + np.arange(len(rows["reward"]))) % CAPACITY
        for name, values in rows.items():
            self.data[name][where] = values
        self.count += len(where)

    def sample(self, size):
        rows = self.rng.integers(0, min(self.count, CAPACITY), size=size)
        return {name: values[rows] for name, values in self.data.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    env, replay = Pendulums(32), Replay()
    key_a, key_c = jax.random.split(jax.random.key(0))
    params = {"actor": init_mlp(key_a, [OBS, 256, 256, ACT]), "critic": init_mlp(key_c, [OBS + ACT, 256, 256, 1])}
    target, opt_state = params, optimizer.init(params)
    obs = env.state
    started = time.perf_counter()
    for step in range(args.steps):
        action = np.asarray(act(params["actor"], obs)) + env.rng.normal(0, 0.1, (32, ACT)).astype(np.float32)
        next_obs, reward = env.step(action)
        replay.add(obs=obs, next_obs=next_obs, action=action, reward=reward)
        obs = next_obs
        params, target, opt_state, value = learn(params, target, opt_state, replay.sample(256))
        if step % 100 == 0:
            print(f"step {step}: loss {float(value):.3f}")
    jax.block_until_ready(params)
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.1f} ms a step")


if __name__ == "__main__":
    main()
