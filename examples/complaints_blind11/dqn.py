"""DQN on a small warehouse: a robot fetches parcels on a grid and must not run out of battery."""
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 12
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Warehouse:
    """Observation: walls, robot and parcel as planes, flattened, and the battery level."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.walls = (self.rng.random((SIZE, SIZE)) < 0.12).astype(np.float32)

    def _free(self):
        while True:
            r, c = self.rng.integers(0, SIZE, 2)
            if not self.walls[r, c]:
                return int(r), int(c)

    def _observe(self):
        planes = np.zeros((3, SIZE, SIZE), dtype=np.float32)
        planes[0] = self.walls
        planes[1][self.robot] = 1.0
        planes[2][self.parcel] = 1.0
        return np.append(planes.ravel(), self.battery / 80).astype(np.float32)

    def reset(self):
        self.robot, self.parcel, self.battery = self._free(), self._free(), 80
        return self._observe()

    def step(self, action):
        dr, dc = MOVES[action]
        r, c = self.robot[0] + dr, self.robot[1] + dc
        self.battery -= 1
        reward = -0.01
        if not (0 <= r < SIZE and 0 <= c < SIZE) or self.walls[r, c]:
            reward = -0.1
        else:
            self.robot = (r, c)
        if self.robot == self.parcel:
            reward, self.parcel = 1.0, self._free()
        return self._observe(), reward, self.battery <= 0


class ReplayBuffer:
    def __init__(self, capacity, dim):
        self.obs = np.zeros((capacity, dim), dtype=np.float16)
        self.next = np.zeros((capacity, dim), dtype=np.float16)
        self.action = np.zeros(capacity, dtype=np.int64)
        self.reward = np.zeros(capacity, dtype=np.float32)
        self.done = np.zeros(capacity, dtype=np.float32)
        self.capacity, self.size, self.at = capacity, 0, 0

    def push(self, obs, action, reward, nxt, done):
        i = self.at
        self.obs[i], self.next[i] = obs, nxt
        self.action[i], self.reward[i], self.done[i] = action, reward, done
        self.at = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, batch):
        idx = np.random.choice(self.size, size=batch, replace=False)
        f = lambda a: torch.from_numpy(a[idx]).float()
        return f(self.obs), torch.from_numpy(self.action[idx]), f(self.reward), f(self.next), f(self.done)


class QNet(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))

    def forward(self, x):
        return self.body(x)


def main(updates=2800, warmup=120_000, per_update=4, batch=64, gamma=0.97):
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    env = Warehouse(0)
    obs = env.reset()
    dim = len(obs)
    q, target = QNet(dim), QNet(dim)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=5e-4)
    memory = ReplayBuffer(200_000, dim)
    for _ in range(warmup):  # random play
        action = random.randrange(4)
        nxt, reward, done = env.step(action)
        memory.push(obs, action, reward, nxt, done)
        obs = env.reset() if done else nxt
    print("warm", memory.size, flush=True)

    score, start = 0.0, time.time()
    for update in range(updates):
        epsilon = max(0.05, 1.0 - update / 1500)
        for _ in range(per_update):
            if random.random() < epsilon:
                action = random.randrange(4)
            else:
                with torch.no_grad():
                    action = q(torch.from_numpy(obs)).argmax().item()
            nxt, reward, done = env.step(action)
            memory.push(obs, action, reward, nxt, done)
            score += reward
            obs = env.reset() if done else nxt
        o, a, r, n, d = memory.sample(batch)
        with torch.no_grad():
            goal = r + gamma * (1 - d) * target(n).amax(1)
        loss = F.smooth_l1_loss(q(o).gather(1, a[:, None])[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        optimizer.step()
        if update % 250 == 0:
            target.load_state_dict(q.state_dict())
            print(update, f"score {score:.1f} loss {loss.item():.4f} {time.time() - start:.1f} s", flush=True)
            score = 0.0


if __name__ == "__main__":
    main()
