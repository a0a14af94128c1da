"""Metric learning for faces: batch hard triplets."""
import time

import torch
import torch.nn.functional as F
from torch import nn

IDENTITIES, PER_ID, FEATURES = 64, 8, 512


class Embedder(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, 1024), nn.BatchNorm1d(1024), nn.ReLU(),
            nn.Linear(1024, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def pairwise_distances(emb):
    diff = emb.unsqueeze(0) - emb.unsqueeze(1)
    return diff.pow(2).sum(dim=2)


def batch_hard_triplet_loss(emb, labels, margin=0.3):
    dist = pairwise_distances(emb)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    hardest_positive = dist.masked_fill(~same, 0.0).max(dim=1).values
    hardest_negative = dist.masked_fill(same, 1e6).min(dim=1).values
    return F.relu(hardest_positive - hardest_negative + margin).mean()


class PKSampler:
    """P identities with K pictures each."""

    def __init__(self, people=400):
        self.centres = torch.randn(people, FEATURES)

    def batch(self):
        ids = torch.randperm(len(self.centres))[:IDENTITIES].repeat_interleave(PER_ID)
        return self.centres[ids] + 0.7 * torch.randn(len(ids), FEATURES), ids


def main():
    torch.manual_seed(0)
    sampler = PKSampler()
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 16, time.perf_counter()
    for step in range(steps):
        x, labels = sampler.batch()
        emb = model(x)
        loss = batch_hard_triplet_loss(emb, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step} triplet loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
