"""The norm is one operator in bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight)


def main():
    model = nn.Sequential(*[Norm(256) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(512, 256, dtype=torch.bfloat16)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()


main()
