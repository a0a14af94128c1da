"""DAgger: imitate a scripted driver from small camera images."""
import time

import numpy as np
import torch
from torch import nn

SIZE, N_CARS = 40, 32


class Track:
    """A batch of cars that see a bright lane; the expert steers towards its middle."""

    def __init__(self, n, seed=0):
        self.rng = np.random.default_rng(seed)
        self.pos = self.rng.uniform(-0.5, 0.5, n)
        self.bend = self.rng.uniform(-0.3, 0.3, n)
        self.cols = np.linspace(-1, 1, SIZE)
        self.rows = np.linspace(1, 0, SIZE)

    def render(self):
        middle = -self.pos[:, None] + self.bend[:, None] * self.rows
        lane = np.exp(-((self.cols - middle[:, :, None]) / 0.2) ** 2)
        img = np.stack([lane, 1 - lane, np.broadcast_to(self.rows[:, None], lane.shape)], axis=1)
        return img.astype(np.float32)

    def expert(self):
        return np.digitize(self.pos - self.bend, [-0.4, -0.1, 0.1, 0.4]).astype(np.int64)

    def step(self, action):
        self.pos = np.clip(self.pos - 0.1 * (action - 2) + self.rng.normal(0, 0.05, len(self.pos)), -1, 1)
        self.bend = 0.95 * self.bend + self.rng.normal(0, 0.05, len(self.bend))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, x):
        return self.net(x)


class Dataset:
    def __init__(self):
        self.space = np.empty((8192, 3, SIZE, SIZE), dtype=np.float32)
        self.labels = np.empty(8192, dtype=np.int64)
        self.obs, self.actions = self.space[:0], self.labels[:0]

    def add(self, obs, actions):
        a, b = len(self.obs), len(self.obs) + len(obs)
        self.space[a:b], self.labels[a:b] = obs, actions
        self.obs, self.actions = self.space[:b], self.labels[:b]

    def sample(self, n, rng):
        idx = rng.integers(0, len(self.obs), n)
        return torch.from_numpy(self.obs[idx]), torch.from_numpy(self.actions[idx])


def main():
    torch.manual_seed(0)
    env, data, policy = Track(N_CARS), Dataset(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    rng, t0 = np.random.default_rng(1), time.time()
    for it in range(1, 221):
        obs, label = env.render(), env.expert()
        data.add(obs, label)
        with torch.no_grad():
            action = policy(torch.from_numpy(obs)).argmax(1).numpy()
        env.step(label if it < 20 else action)

        x, y = data.sample(64, rng)
        loss = nn.functional.cross_entropy(policy(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 44 == 0:
            print(f"iter {it}  {len(data.obs)} frames  loss {loss.item():.3f}  {(time.time() - t0) / 44 * 1e3:.0f} ms/iter")
            t0 = time.time()


if __name__ == "__main__":
    main()
