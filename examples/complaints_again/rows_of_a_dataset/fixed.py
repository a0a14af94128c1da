"""Data that is in memory as two tensors is fetched a batch at a time."""

import torch
from torch import nn

torch.set_num_threads(1)


def batches(inputs, targets, size):
    for chosen in torch.randperm(len(inputs)).split(size):
        yield inputs[chosen], targets[chosen]


def main():
    data = torch.randn(20_000, 30), torch.randn(20_000, 1)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(2):
        for inputs, targets in batches(*data, 1000):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
