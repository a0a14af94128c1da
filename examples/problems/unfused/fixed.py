"""The activation is the one operator that PyTorch has for it."""

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def gelu(x):
    return F.gelu(x, approximate="tanh")


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
