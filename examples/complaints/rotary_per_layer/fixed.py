"""The angles are computed once a step and handed on."""

import torch
from torch import nn

torch.set_num_threads(1)


def rotary(length, width, base=10000.0):
    steps = torch.arange(0, width, 2).float() / width
    angles = torch.outer(torch.arange(length).float(), 1.0 / base**steps)
    return angles.cos(), angles.sin()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qk = nn.Linear(width, width)

    def forward(self, x, angles):
        cos, sin = angles
        q = self.qk(x)
        a, b = q[..., ::2], q[..., 1::2]
        return x + torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Model(nn.Module):
    def __init__(self, width=64, layers=8):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x):
        angles = rotary(x.shape[1], x.shape[2])
        for block in self.blocks:
            x = block(x, angles)
        return x


def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(1, 512, 64)
    for _ in range(15):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
