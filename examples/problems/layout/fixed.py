"""The whole model works in channels_last."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return torch.relu(self.conv(x))


def main():
    model = nn.Sequential(*[Block(16) for _ in range(6)]).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(4, 16, 64, 64).contiguous(memory_format=torch.channels_last)
    for _ in range(12):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


main()
