"""The sum is a number."""

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    epoch_loss = 0
    for _ in range(30):
        x = torch.randn(256, 64)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        epoch_loss += loss.item()
    print(float(epoch_loss))


main()
