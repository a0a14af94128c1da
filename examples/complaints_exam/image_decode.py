"""Trains on images that are decoded and resized with NumPy for every sample."""

import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIX = os.environ.get("FIX") == "1"


class Pictures(Dataset):
    def __init__(self, number):
        self.raw = np.random.default_rng(0).integers(0, 256, (number, 96, 96, 3), dtype=np.uint8)
        self.small = [self.shrink(one) for one in self.raw] if FIX else None

    def shrink(self, picture):
        rows = np.linspace(0, 95, 32)
        return np.stack([picture[int(r)][[int(c) for c in rows]] for r in rows]).astype(np.float32) / 255

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        picture = self.small[index] if FIX else self.shrink(self.raw[index])
        return torch.from_numpy(picture).permute(2, 0, 1), index % 10


def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for pictures, labels in DataLoader(Pictures(1600), batch_size=32):
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


train()
