"""DQN with prioritised replay on a toy environment."""
import argparse
import time

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


class PrioritisedReplay:
    def __init__(self, capacity, obs_dim, alpha=0.6, beta=0.4):
        self.capacity, self.alpha, self.beta = capacity, alpha, beta
        self.obs = np.zeros((capacity, obs_dim), np.float32)
        self.next_obs = np.zeros((capacity, obs_dim), np.float32)
        self.action = np.zeros(capacity, np.int64)
        self.reward = np.zeros(capacity, np.float32)
        self.priority = np.zeros(capacity, np.float64)
        self.size = self.head = 0

    def add(self, obs, action, reward, next_obs):
        n = len(obs)
        idx = (self.head + np.arange(n)) % self.capacity
        self.obs[idx], self.action[idx], self.reward[idx], self.next_obs[idx] = obs, action, reward, next_obs
        self.priority[idx] = self.priority.max() or 1.0
        self.head = (self.head + n) % self.capacity
        self.size = min(self.size + n, self.capacity)

    def sample(self, n):
        p = self.priority[:self.size] ** self.alpha
        p /= p.sum()
        idx = np.random.choice(self.size, n, p=p)
        weight = (self.size * p[idx]) ** -self.beta
        batch = (self.obs[idx], self.action[idx], self.reward[idx], self.next_obs[idx], weight / weight.max())
        return idx, [torch.as_tensor(b) for b in batch]

    def set_priority(self, idx, td):
        self.priority[idx] = np.abs(td) + 1e-3


def q_net(obs, actions, width=512):
    return nn.Sequential(nn.Linear(obs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, actions))


class ToyEnv:
    def __init__(self, n, dim, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.standard_normal((n, dim), dtype=np.float32)

    def step(self, action):
        noise = self.rng.standard_normal(self.state.shape, dtype=np.float32)
        reward = self.state[np.arange(len(action)), action]
        self.state = 0.9 * self.state + 0.3 * noise
        return self.state, reward


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--warmup", type=int, default=500_000)
    args = p.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    dim, actions = 32, 8
    env = ToyEnv(64, dim)
    replay = PrioritisedReplay(500_000, dim)
    rng = np.random.default_rng(3)
    fill = rng.standard_normal((args.warmup, dim), dtype=np.float32)
    replay.add(fill, rng.integers(0, actions, args.warmup), fill[:, 0], fill)
    online, target = q_net(dim, actions), q_net(dim, actions)
    target.load_state_dict(online.state_dict())
    opt = torch.optim.Adam(online.parameters(), lr=3e-4)
    obs = env.state
    t0 = time.time()
    for step in range(args.steps):
        with torch.no_grad():
            action = online(torch.as_tensor(obs)).argmax(1).numpy()
        next_obs, reward = env.step(action)
        replay.add(obs, action, reward, next_obs)
        obs = next_obs
        idx, (o, a, r, o2, w) = replay.sample(512)
        with torch.no_grad():
            goal = r + 0.97 * target(o2).max(1).values
        q = online(o).gather(1, a.unsqueeze(1)).squeeze(1)
        td = q - goal
        loss = (w * F.huber_loss(q, goal, reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        replay.set_priority(idx, td.detach().numpy())
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
            print(step, round(loss.item(), 5))
    print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")


if __name__ == "__main__":
    main()
