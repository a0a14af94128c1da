"""Validation does without gradients."""

import torch
from torch import nn

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()) for _ in range(6)])
        self.head = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        return self.head(self.body(x))


def validate(net, images):
    net.eval()
    with torch.no_grad():
        out = net(images)
    net.train()
    return out.argmax(1)


def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    small, large = torch.randn(1, 16, 24, 24), torch.randn(4, 16, 64, 64)
    for _ in range(8):
        loss = net(small).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        validate(net, large)


main()
