"""It is off."""

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    net = nn.Sequential(*[layer for _ in range(20) for layer in (nn.Linear(32, 32), nn.ReLU())])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(32, 32)
    for _ in range(25):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
