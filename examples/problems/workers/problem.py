"""Sixteen workers make batches on a machine with fewer cores."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Noise(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, place):
        return torch.randn(64).sort().values


def main():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    workers = 2 * len(os.sched_getaffinity(0)) + 4
    for batch in DataLoader(Noise(), batch_size=8, num_workers=workers):  # problem
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
