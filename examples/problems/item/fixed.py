"""The losses are added up as a tensor and read once a step."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(30, 64, 256)
    total = 0.0
    for batch in data:
        optimizer.zero_grad()
        losses = model(batch).square().squeeze(1)
        losses.mean().backward()
        optimizer.step()
        total += losses.detach().sum().item()
    print(f"mean loss {total / data.shape[0] / data.shape[1]:.3f}")


main()
