"""REINFORCE on a hand-written environment: a drone keeps its height in gusty wind."""
import random
import time

import torch
import torch.nn as nn
from torch.distributions import Categorical

GAMMA, EPISODES, ENVS = 0.995, 36, 16


class DroneEnv:
    """Sixteen drones at once: height, speed, wind and battery."""

    def __init__(self, n=ENVS, horizon=400):
        self.n, self.horizon = n, horizon

    def reset(self):
        self.height = torch.zeros(self.n)
        self.speed = torch.zeros(self.n)
        self.wind = torch.randn(self.n) * 0.1
        self.battery = torch.ones(self.n)
        self.t = 0
        return self.observe()

    def observe(self):
        return torch.stack([self.height, self.speed, self.wind, self.battery], dim=1)

    def step(self, action):
        thrust = (action.float() - 1.0) * 0.5
        self.wind = 0.95 * self.wind + 0.05 * torch.randn(self.n)
        self.speed = 0.9 * self.speed + 0.1 * (thrust + self.wind)
        self.height = self.height + self.speed
        self.battery = self.battery - 0.001 * thrust.abs()
        self.t += 1
        reward = 1.0 - self.height.abs().clamp(max=2.0) - 0.1 * thrust.abs()
        return self.observe(), reward, self.t >= self.horizon


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))

    def forward(self, obs):
        return Categorical(logits=self.net(obs))


def play(env, policy):
    obs, done = env.reset(), False
    log_probs, rewards = [], []
    while not done:
        dist = policy(obs)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        obs, reward, done = env.step(action)
        rewards.append(reward.tolist())
    return torch.stack(log_probs), rewards


def discounted_returns(rewards):
    """What each drone still earns from step t to the end of the episode."""
    returns = []
    for t in range(len(rewards)):
        row = []
        for drone in range(len(rewards[t])):
            row.append(sum(GAMMA ** (k - t) * rewards[k][drone] for k in range(t, len(rewards), 1)))
        returns.append(row)
    return torch.tensor(returns)


def main():
    torch.manual_seed(0)
    random.seed(0)
    env, policy = DroneEnv(), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    start = time.perf_counter()
    for episode in range(EPISODES):
        log_probs, rewards = play(env, policy)
        returns = discounted_returns(rewards)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(log_probs * advantage).sum(0).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (episode + 1) % 10 == 0:
            print(f"episode {episode + 1} return {returns[0].mean().item():.2f}")
    print(f"{(time.perf_counter() - start) / EPISODES * 1e3:.1f} ms an episode")


if __name__ == "__main__":
    main()
