"""Train an action classifier on short clips stored in compressed shards, loaded by two workers."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLIPS_PER_SHARD = 96
SHARDS = 8
CLASSES = 12


def write_shards(folder):
    rng = np.random.default_rng(0)
    for shard in range(SHARDS):
        base = rng.integers(0, 64, size=(CLIPS_PER_SHARD, 4, 1, 1, 3))
        texture = rng.integers(0, 24, size=(CLIPS_PER_SHARD, 4, 40, 40, 3))
        np.savez_compressed(
            os.path.join(folder, f"shard{shard}.npz"),
            frames=(base + texture).astype(np.uint8),
            labels=rng.integers(0, CLASSES, size=CLIPS_PER_SHARD),
        )


class ClipShards(Dataset):
    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"shard{shard}.npz") for shard in range(SHARDS)]

    def __len__(self):
        return SHARDS * CLIPS_PER_SHARD

    def __getitem__(self, index):
        shard, row = divmod(index, CLIPS_PER_SHARD)
        # memory-mapped: only the clip that we need is read
        archive = np.load(self.paths[shard], mmap_mode="r")
        clip = archive["frames"][row]
        label = int(archive["labels"][row])
        clip = torch.from_numpy(clip).permute(3, 0, 1, 2).float().div_(255)
        return clip, label


class ClipNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(3, width, 3, padding=1),
            nn.BatchNorm3d(width),
            nn.ReLU(),
            nn.MaxPool3d((1, 2, 2)),
            nn.Conv3d(width, 2 * width, 3, padding=1),
            nn.BatchNorm3d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool3d(1),
            nn.Flatten(),
            nn.Linear(2 * width, CLASSES),
        )

    def forward(self, clip):
        return self.layers(clip)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder)
        loader = DataLoader(
            ClipShards(folder), batch_size=args.batch_size, shuffle=True, num_workers=2, persistent_workers=True
        )
        model = ClipNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        loss_of = nn.CrossEntropyLoss()
        started = time.perf_counter()
        steps = 0
        for epoch in range(args.epochs):
            total = 0.0
            for clips, labels in loader:
                loss = loss_of(model(clips), labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total += loss.item()
                steps += 1
            print(f"epoch {epoch}: loss {total / len(loader):.3f}")
        print(f"{(time.perf_counter() - started) / steps * 1000:.0f} ms a step")


if __name__ == "__main__":
    main()
