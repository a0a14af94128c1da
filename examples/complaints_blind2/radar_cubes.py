# fmt: off
import tempfile
from pathlib import Path
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Cubes(Dataset):
    def __init__(self, n=60):
        self.folder = Path(tempfile.mkdtemp())
        rng = np.random.default_rng(0)
        for i in range(n):
            np.savez_compressed(self.folder / f"{i}.npz", cube=rng.normal(size=(16, 64, 64)).astype(np.float32))

    def __len__(self):
        return 960

    def __getitem__(self, i):
        cube = np.load(self.folder / f"{i % 60}.npz")["cube"]
        return torch.from_numpy(cube).mean(0), i % 4


def main():
    torch.manual_seed(0)
    loader = DataLoader(Cubes(), batch_size=8)
    net = nn.Sequential(nn.Flatten(), nn.Linear(4096, 64), nn.ReLU(), nn.Linear(64, 4))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
