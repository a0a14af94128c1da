"""A tensor is added up by the operator for it."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Flow(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))
        self.net = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, width))

    def forward(self, x):
        log_det = self.scale.tanh().sum()
        return self.net(x) * self.scale.tanh().exp(), log_det


def main():
    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(40):
        z, log_det = model(torch.randn(64, 64))
        loss = z.square().mean() - log_det
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
