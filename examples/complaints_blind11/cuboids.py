"""Classify small 3-D cuboids cut from a microscope stack as cell or artefact.

The workers use spawn: the stack reader is not fork-safe.
"""
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Cuboids(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 100_003 + i)
        label = i % 2
        cube = rng.normal(size=(1, 12, 24, 24)).astype(np.float32)
        if label:
            cube[:, 4:9, 8:17, 8:17] += 0.7
        if rng.random() < 0.5:
            cube = cube[..., ::-1].copy()
        return torch.from_numpy(cube), label


class CellNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv3d(1, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(16, 32, 3, padding=1), nn.BatchNorm3d(32), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(32, 64, 3, padding=1), nn.BatchNorm3d(64), nn.ReLU(), nn.AdaptiveAvgPool3d(1),
        )
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main(epochs=4):
    torch.manual_seed(0)
    loader = DataLoader(Cuboids(256, seed=1), batch_size=32, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn")
    model = CellNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        start, good = time.time(), 0
        for x, y in loader:
            optimizer.zero_grad()
            out = model(x)
            loss = loss_fn(out, y)
            loss.backward()
            optimizer.step()
            good += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {good / 256:.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
