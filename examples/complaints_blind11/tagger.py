"""Tag support articles with one of 40 topics: averaged word vectors and a small classifier.

The vocabulary is everything we ever saw in the ticket dump, because rare product codes matter.
"""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 120_000
TOPICS = 40


class Articles:
    """Zipf-like token ids, each topic with its own preferred slice of the vocabulary."""

    def __init__(self, n, length, seed=0):
        rng = np.random.default_rng(seed)
        self.y = torch.from_numpy(rng.integers(0, TOPICS, n))
        common = rng.zipf(1.3, (n, length)) % VOCAB
        topical = (self.y.numpy()[:, None] * 997 + rng.integers(0, 400, (n, length))) % VOCAB
        keep = rng.random((n, length)) < 0.7
        self.x = torch.from_numpy(np.where(keep, common, topical)).long()

    def batches(self, size):
        order = torch.randperm(len(self.y))
        for i in range(0, len(order) - size + 1, size):
            take = order[i : i + size]
            yield self.x[take], self.y[take]


class Tagger(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, hidden, 5, padding=2)
        self.drop = nn.Dropout(0.2)
        self.fc1 = nn.Linear(hidden, hidden)
        self.fc2 = nn.Linear(hidden, TOPICS)

    def forward(self, tokens):
        h = self.embed(tokens).transpose(1, 2)
        h = F.relu(self.conv(h)).amax(2)
        return self.fc2(F.relu(self.fc1(self.drop(h))))


def evaluate(model, data, size):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for x, y in data.batches(size):
            good += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    model.train()
    return good / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(1)

    train, valid = Articles(3200, 80), Articles(640, 80, seed=1)
    model = Tagger(args.dim, 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        start, seen = time.time(), 0.0
        for x, y in train.batches(args.batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            seen += loss.item()
        acc = evaluate(model, valid, 128)
        print(f"epoch {epoch}: loss {seen / 100:.3f} valid {acc:.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
