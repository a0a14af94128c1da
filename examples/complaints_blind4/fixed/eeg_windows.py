"""EEG motor imagery: EEGNet-like model on two second windows cut from recordings on disk."""
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SFREQ, CHANNELS, WINDOW = 128, 22, 256


def write_recordings(folder, n_subjects=12, minutes=3):
    rng = np.random.default_rng(0)
    paths = []
    for s in range(n_subjects):
        n = SFREQ * 60 * minutes
        signal = rng.standard_normal((CHANNELS, n), dtype=np.float32)
        onsets = np.sort(rng.integers(0, n - WINDOW, 80))
        path = os.path.join(folder, f"A{s:02d}.npz")
        np.savez(path, signal=signal, onsets=onsets, labels=rng.integers(0, 4, 80))
        paths.append(path)
    return paths


class WindowDataset(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.index = []
        self.signals = [np.load(path)["signal"] for path in paths]
        for i, path in enumerate(paths):
            with np.load(path) as rec:
                self.index += [(i, int(o), int(l)) for o, l in zip(rec["onsets"], rec["labels"])]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, item):
        rec, onset, label = self.index[item]
        signal = self.signals[rec]
        x = signal[:, onset:onset + WINDOW]
        x = (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-6)
        return torch.from_numpy(x), label


class EEGNet(nn.Module):
    def __init__(self, f1=8, d=2, f2=16, classes=4):
        super().__init__()
        self.temporal = nn.Conv2d(1, f1, (1, 64), padding=(0, 32), bias=False)
        self.bn1 = nn.BatchNorm2d(f1)
        self.spatial = nn.Conv2d(f1, f1 * d, (CHANNELS, 1), groups=f1, bias=False)
        self.bn2 = nn.BatchNorm2d(f1 * d)
        self.sep = nn.Conv2d(f1 * d, f2, (1, 16), padding=(0, 8), bias=False)
        self.fc = nn.Linear(f2 * 8, classes)

    def forward(self, x):
        x = self.bn1(self.temporal(x.unsqueeze(1)))
        x = F.avg_pool2d(F.elu(self.bn2(self.spatial(x))), (1, 4))
        x = F.adaptive_avg_pool2d(F.elu(self.sep(x)), (1, 8))
        return self.fc(F.dropout(x.flatten(1), 0.25, self.training))


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(WindowDataset(write_recordings(folder)), batch_size=16, shuffle=True)
        model = EEGNet()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(2):
            start = time.time()
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            took = time.time() - start
            print(f"epoch {epoch} loss {loss.item():.3f} {took:.2f}s, {took / len(loader) * 1e3:.1f} ms per batch")


if __name__ == "__main__":
    main()
