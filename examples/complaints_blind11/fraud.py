"""Fraud detection on card payments: a GRU over the last payments, with live metrics in the log line."""
import time

import torch
import torch.nn as nn
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision

STEPS, BATCH, LENGTH, FEATURES = 300, 512, 12, 12


def payments(seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(BATCH, LENGTH, FEATURES, generator=g)
        risk = x[:, -5:, :3].sum((1, 2)) + 0.5 * torch.randn(BATCH, generator=g)
        yield x, (risk > 5.0).long()


class Scorer(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.gru = nn.GRU(FEATURES, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))

    def forward(self, x):
        _, h = self.gru(self.norm(x))
        return self.head(h[-1]).squeeze(1)


def main():
    torch.manual_seed(0)
    model = Scorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=STEPS)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(4.0))
    metrics = MetricCollection({"auroc": BinaryAUROC(), "ap": BinaryAveragePrecision()})
    stream = payments(1)
    start = time.time()
    for step in range(STEPS):
        x, y = next(stream)
        logits = model(x)
        loss = loss_fn(logits, y.float())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()

        metrics.update(logits.detach(), y)
        scores = metrics.compute()
        if step % 20 == 19:
            line = " ".join(f"{k} {v:.3f}" for k, v in scores.items())
            print(f"step {step + 1:4d} loss {loss.item():.3f} {line} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
