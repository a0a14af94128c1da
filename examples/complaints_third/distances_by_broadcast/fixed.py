"""Distances between all pairs are computed by the operator for it."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def distances(a, b):
    return torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist").square()


def main():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64))
    centres = nn.Parameter(torch.randn(200, 64))
    optimizer = torch.optim.Adam([*model.parameters(), centres], foreach=True)
    for _ in range(20):
        points = model(torch.randn(256, 32))
        loss = distances(points, centres).amin(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
