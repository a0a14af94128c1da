# fmt: off
import copy
import random
import torch
import torch.nn as nn


class Maze:
    def __init__(self, size=20):
        self.size, self.state = size, {"pos": [0, 0], "grid": [[{"wall": (i * j) % 7 == 3, "seen": 0} for j in range(size)] for i in range(size)]}

    def act(self, move):
        dx, dy = ((0, 1), (1, 0), (0, -1), (-1, 0))[move]
        pos = self.state["pos"]
        pos[0], pos[1] = (pos[0] + dx) % self.size, (pos[1] + dy) % self.size
        self.state["grid"][pos[0]][pos[1]]["seen"] += 1
        return 1.0 if pos == [19, 19] else -0.01


class Replay:
    def __init__(self):
        self.items = []

    def push(self, before, move, reward, after):
        self.items.append((copy.deepcopy(before), move, reward, copy.deepcopy(after)))
        del self.items[:-200]

    def sample(self, n):
        return random.choices(self.items, k=n)


def features(state):
    return torch.tensor([float(state["pos"][0]), float(state["pos"][1])])


def main():
    torch.manual_seed(0)
    maze, replay = Maze(), Replay()
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 4))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(120):
        for _ in range(8):
            before = maze.state
            move = random.randrange(4)
            reward = maze.act(move)
            replay.push(before, move, reward, maze.state)
        batch = replay.sample(32)
        x = torch.stack([features(b[0]) for b in batch])
        y = torch.tensor([b[2] for b in batch])
        loss = (net(x).max(1).values - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
