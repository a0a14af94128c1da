import time

import numpy as np
import torch
from torch import nn

QUANTILES = [0.1, 0.5, 0.9]
BATCH_SIZE = 2048


class RentNet(nn.Module):
    def __init__(self, n_num, cardinalities, hidden=256):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, min(50, c // 2 + 1)) for c in cardinalities])
        n_in = n_num + sum(e.embedding_dim for e in self.embs)
        self.body = nn.Sequential(
            nn.BatchNorm1d(n_in),
            nn.Linear(n_in, hidden), nn.ReLU(), nn.BatchNorm1d(hidden), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.BatchNorm1d(hidden), nn.Dropout(0.1),
        )
        self.heads = nn.ModuleList([nn.Linear(hidden, 1) for _ in QUANTILES])

    def forward(self, x_num, x_cat):
        emb = [e(x_cat[:, i]) for i, e in enumerate(self.embs)]
        h = self.body(torch.cat([x_num] + emb, dim=1))
        return [head(h) for head in self.heads]


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, preds, target):
        losses = []
        for q, pred in zip(self.quantiles, preds):
            errors = target - pred
            losses.append(torch.max((q - 1) * errors, q * errors).mean())
        return torch.stack(losses).sum()


def make_data(n=24000):
    rng = np.random.default_rng(7)
    x_num = rng.normal(size=(n, 12)).astype(np.float32)
    cards = [30, 120, 7]
    x_cat = np.stack([rng.integers(0, c, n) for c in cards], axis=1)
    rent = 8 + x_num[:, 0] + 0.3 * x_cat[:, 2] + rng.gumbel(size=n) * 0.5
    return torch.from_numpy(x_num), torch.from_numpy(x_cat), torch.from_numpy(rent.astype(np.float32)), cards


def main():
    torch.manual_seed(7)
    x_num, x_cat, rent, cards = make_data()
    model = RentNet(x_num.shape[1], cards)
    criterion = PinballLoss(QUANTILES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        start, total = time.time(), 0.0
        batches = torch.randperm(len(rent)).split(BATCH_SIZE)
        for idx in batches:
            optimizer.zero_grad()
            preds = model(x_num[idx], x_cat[idx])
            loss = criterion(preds, rent[idx])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} pinball {total / len(batches):.4f} time {time.time() - start:.2f}s")


if __name__ == "__main__":
    main()
