"""The activation is written out in ten small operators, each of which reads and writes everything."""

import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def gelu(x):
    cube = x * x * x
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * cube)
    return 0.5 * x * (1 + torch.tanh(inner))  # problem


def main():
    first, second = nn.Linear(64, 512), nn.Linear(512, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    batch = torch.randn(512, 64)
    for _ in range(20):
        optimizer.zero_grad()
        loss = second(gelu(first(batch))).square().mean()
        loss.backward()
        optimizer.step()


main()
