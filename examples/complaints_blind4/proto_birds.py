"""Prototypical network on pre-computed image embeddings, 20-way 5-shot."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Embeddings(Dataset):
    def __init__(self, n=60000, dim=256, n_classes=300):
        rng = np.random.default_rng(0)
        names = np.array([f"n{c:08d}" for c in rng.choice(10 ** 8, n_classes, replace=False)])
        self.labels = names[rng.integers(0, n_classes, n)]
        self.x = torch.from_numpy(rng.standard_normal((n, dim), dtype=np.float32))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.labels[i]


class EpisodeSampler:
    def __init__(self, labels, n_way, k_shot, n_query, episodes):
        self.labels = labels
        self.classes = np.unique(labels)
        self.n_way, self.per_class, self.episodes = n_way, k_shot + n_query, episodes
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return self.episodes

    def __iter__(self):
        for _ in range(self.episodes):
            batch = []
            for name in self.rng.choice(self.classes, self.n_way, replace=False):
                members = np.flatnonzero(self.labels == name)
                batch.append(self.rng.choice(members, self.per_class, replace=False))
            yield np.concatenate(batch).tolist()


def collate(samples):
    return torch.stack([x for x, _ in samples])


class ProtoHead(nn.Module):
    def __init__(self, dim=256, hidden=512, out=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, x, n_way, k_shot):
        z = self.net(x).view(n_way, -1, 128)
        protos = z[:, :k_shot].mean(1)
        queries = z[:, k_shot:].reshape(-1, 128)
        return -torch.cdist(queries, protos).pow(2)


def main(n_way=20, k_shot=5, n_query=10, episodes=300):
    torch.manual_seed(0)
    dataset = Embeddings()
    sampler = EpisodeSampler(dataset.labels, n_way, k_shot, n_query, episodes)
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)
    model = ProtoHead()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    target = torch.arange(n_way).repeat_interleave(n_query)
    start = time.time()
    for i, x in enumerate(loader, 1):
        logits = model(x, n_way, k_shot)
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 50 == 0:
            print(f"episode {i} loss {loss.item():.3f} {(time.time() - start) / i * 1e3:.1f} ms/episode")


if __name__ == "__main__":
    main()
