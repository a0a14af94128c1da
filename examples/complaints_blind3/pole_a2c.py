"""Advantage actor critic on a pole, several environments."""
import math
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

NUM_ENVS, ROLLOUT, GAMMA = 24, 16, 0.99


class PoleEnv:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.astype(np.float32)

    def step(self, action):
        x, v, theta, omega = self.state
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * omega ** 2 * math.sin(theta)) / 1.1
        alpha = (9.8 * math.sin(theta) - math.cos(theta) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(theta) ** 2 / 1.1))
        acc = temp - 0.05 * alpha * math.cos(theta) / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * acc, theta + 0.02 * omega, omega + 0.02 * alpha])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state.astype(np.float32), 1.0, done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.pi = nn.Linear(128, 2)
        self.v = nn.Linear(128, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def collect(model, envs, observations):
    log_probs, values, rewards, masks = [], [], [], []
    for _ in range(ROLLOUT):
        step_logp, step_value, step_reward, step_mask = [], [], [], []
        for i, env in enumerate(envs):
            dist, value = model(torch.from_numpy(observations[i]))
            action = dist.sample()
            obs, reward, done = env.step(action.item())
            observations[i] = env.reset() if done else obs
            step_logp.append(dist.log_prob(action))
            step_value.append(value)
            step_reward.append(reward)
            step_mask.append(0.0 if done else 1.0)
        log_probs.append(torch.stack(step_logp))
        values.append(torch.stack(step_value))
        rewards.append(torch.tensor(step_reward))
        masks.append(torch.tensor(step_mask))
    return log_probs, torch.stack(values), rewards, masks


def main():
    torch.manual_seed(0)
    envs = [PoleEnv(i) for i in range(NUM_ENVS)]
    observations = [env.reset() for env in envs]
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=7e-4)
    updates, begin = 32, time.perf_counter()
    for update in range(updates):
        log_probs, values, rewards, masks = collect(model, envs, observations)
        ret, returns = values[-1].detach(), []
        for r, m in zip(reversed(rewards), reversed(masks)):
            ret = r + GAMMA * ret * m
            returns.insert(0, ret)
        advantage = torch.stack(returns) - values
        loss = -(torch.stack(log_probs) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 10 == 0:
            print(f"update {update} loss {loss.item():.3f} alive {torch.stack(masks).mean():.3f}")
    print(f"{(time.perf_counter() - begin) / updates * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
