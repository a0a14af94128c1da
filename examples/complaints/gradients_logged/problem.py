"""Every step formats all gradients for the log."""

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(64, 64)
    log = []
    for step in range(30):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(f"{step}: {loss} {[one.grad for one in net.parameters()]}")  # problem


main()
