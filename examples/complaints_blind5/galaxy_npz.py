import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def write_survey(path, n=1200, size=40):
    rng = np.random.default_rng(3)
    yy, xx = np.mgrid[:size, :size] - size / 2
    labels = rng.integers(0, 4, n)
    widths = 3 + 2 * labels[:, None, None] + rng.random((n, 1, 1))
    stamps = 180 * np.exp(-(xx**2 + yy**2) / (2 * widths**2)) + rng.normal(20, 5, (n, size, size))
    np.savez(path, stamps=stamps.clip(0, 255).astype(np.uint8), labels=labels, redshift=rng.random(n))


class GalaxyStamps(Dataset):
    def __init__(self, path, augment=True):
        self.archive = np.load(path)
        self.length = len(self.archive["labels"])
        self.augment = augment

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        stamp = self.archive["stamps"][idx]
        label = self.archive["labels"][idx]
        x = torch.from_numpy(stamp).float().div(255).unsqueeze(0)
        if self.augment:
            x = torch.rot90(x, int(torch.randint(4, (1,))), dims=(1, 2))
        return x, int(label)


class StampCNN(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(), nn.Linear(256, n_classes),
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "survey.npz")
        write_survey(path)
        loader = DataLoader(GalaxyStamps(path), batch_size=32, shuffle=True, drop_last=True)
        model = StampCNN()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for epoch in range(3):
            start, running = time.time(), 0.0
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                running += loss.item()
            took = time.time() - start
            print(f"epoch {epoch} loss {running / len(loader):.3f} {took:.2f} s ({took / len(loader) * 1e3:.0f} ms/batch)")


if __name__ == "__main__":
    main()
