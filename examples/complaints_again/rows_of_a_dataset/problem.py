"""Data that is in memory as two tensors is fetched row by row and stacked again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def main():
    data = TensorDataset(torch.randn(20_000, 30), torch.randn(20_000, 1))
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(2):
        for inputs, targets in DataLoader(data, batch_size=1000, shuffle=True):  # problem
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
