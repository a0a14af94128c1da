"""Advantage actor-critic for a warehouse robot in a hand-written grid world."""
import random

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.set_num_threads(1)
SIZE = 64
VIEW = 4
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class Warehouse:
    """Shelves block the way; the robot sees a window around itself."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.shelves = []
        for x in range(2, SIZE - 2, 3):
            for y in range(2, SIZE - 2):
                if y % 9 and self.rng.random() < 0.9:
                    self.shelves.append((x, y))
        self.reset()

    def blocked(self, cell):
        x, y = cell
        return not (0 <= x < SIZE and 0 <= y < SIZE) or cell in self.shelves

    def free_cell(self):
        while True:
            cell = (self.rng.randrange(SIZE), self.rng.randrange(SIZE))
            if not self.blocked(cell):
                return cell

    def reset(self):
        self.robot, self.goal, self.age = self.free_cell(), self.free_cell(), 0
        return self.observe()

    def observe(self):
        x, y = self.robot
        window = [float(self.blocked((x + i, y + j)))
                  for i in range(-VIEW, VIEW + 1) for j in range(-VIEW, VIEW + 1)]
        return window + [(self.goal[0] - x) / SIZE, (self.goal[1] - y) / SIZE]

    def step(self, action):
        dx, dy = MOVES[action]
        target = (self.robot[0] + dx, self.robot[1] + dy)
        self.age += 1
        reward = -0.01
        if self.blocked(target):
            reward -= 0.05
        else:
            self.robot = target
        arrived = self.robot == self.goal
        done = arrived or self.age >= 200
        obs = self.reset() if done else self.observe()
        return obs, reward + float(arrived), done


class ActorCritic(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        inputs = (2 * VIEW + 1) ** 2 + 2
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy = nn.Linear(width, len(MOVES))
        self.value = nn.Linear(width, 1)

    def forward(self, x):
        x = self.body(x)
        return self.policy(x), self.value(x).squeeze(-1)


def main(updates=50, envs=8, horizon=16, gamma=0.98):
    torch.manual_seed(0)
    fleet = [Warehouse(i) for i in range(envs)]
    net = ActorCritic()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-4)
    obs = torch.tensor([env.reset() for env in fleet])
    for update in range(updates):
        log_probs, values, rewards, alive, entropies = [], [], [], [], []
        for _ in range(horizon):
            logits, value = net(obs)
            dist = Categorical(logits=logits)
            action = dist.sample()
            results = [env.step(a) for env, a in zip(fleet, action.tolist())]
            obs = torch.tensor([r[0] for r in results])
            log_probs.append(dist.log_prob(action))
            entropies.append(dist.entropy())
            values.append(value)
            rewards.append(torch.tensor([r[1] for r in results]))
            alive.append(torch.tensor([0.0 if r[2] else 1.0 for r in results]))
        with torch.no_grad():
            ret = net(obs)[1]
        returns = []
        for r, a in zip(reversed(rewards), reversed(alive)):
            ret = r + gamma * a * ret
            returns.append(ret)
        returns = torch.stack(returns[::-1])
        advantage = returns - torch.stack(values)
        actor = -(torch.stack(log_probs) * advantage.detach()).mean()
        loss = actor + 0.5 * advantage.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 10 == 0:
            print(f"update {update}: mean reward {np.mean([r.mean().item() for r in rewards]):.4f}")


if __name__ == "__main__":
    main()
