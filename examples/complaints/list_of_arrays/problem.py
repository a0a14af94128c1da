"""A batch is made from a list of arrays, element by element."""

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)


class Replay:
    def __init__(self):
        self.states = [np.random.rand(64).astype(np.float32) for _ in range(5000)]

    def sample(self, size):
        chosen = [self.states[place] for place in np.random.randint(0, 5000, size)]
        return torch.tensor([list(row) for row in chosen])  # problem


def main():
    memory = Replay()
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(40):
        batch = memory.sample(512)
        loss = net(batch).max(1).values.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
