"""Every step prints a tensor."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(64, 64)
    for step in range(30):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        print(step, loss, model[2].weight)  # problem


main()
