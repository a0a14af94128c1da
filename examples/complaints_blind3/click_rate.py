"""Click-through rate: factorisation machine with a progress line."""
import time

import numpy as np
import torch
from scipy.stats import rankdata
from torch import nn

FIELDS, BUCKETS, BATCH, STEPS = 12, 2000, 512, 400


def roc_auc(y_true, y_score):
    ranks = rankdata(y_score)
    positives = y_true.sum()
    negatives = len(y_true) - positives
    return (ranks[y_true == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives)


class FactorizationMachine(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.linear = nn.Embedding(FIELDS * BUCKETS, 1, sparse=True)
        self.factors = nn.Embedding(FIELDS * BUCKETS, dim, sparse=True)
        nn.init.normal_(self.factors.weight, std=0.05)

    def forward(self, x):
        v = self.factors(x)
        pair = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        return self.linear(x).sum((1, 2)) + pair


def impressions(rng):
    offsets = np.arange(FIELDS) * BUCKETS
    while True:
        fields = rng.integers(0, BUCKETS, (BATCH, FIELDS))
        clicked = (rng.random(BATCH) < 0.05 + 0.3 * (fields[:, 0] < 300)).astype(np.float32)
        yield torch.from_numpy(fields + offsets), torch.from_numpy(clicked)


def main():
    torch.manual_seed(0)
    stream = impressions(np.random.default_rng(0))
    model = FactorizationMachine()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    all_labels, all_scores = [], []
    times = []
    for step in range(STEPS):
        begin = time.perf_counter()
        x, y = next(stream)
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        all_labels.append(y.numpy())
        all_scores.append(torch.sigmoid(logits).detach().numpy())
        auc = roc_auc(np.concatenate(all_labels), np.concatenate(all_scores))
        times.append(time.perf_counter() - begin)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f} auc {auc:.4f} {times[-1] * 1e3:.1f} ms")
    print(f"{sum(times) / len(times) * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
