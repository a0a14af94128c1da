"""Binary click model: tabular features, embeddings, running AUC on the progress line."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F


class ClickNet(nn.Module):
    def __init__(self, n_cat=12, vocab=5000, dim=24, dense=32):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(vocab, dim) for _ in range(n_cat))
        self.mlp = nn.Sequential(
            nn.Linear(n_cat * dim + dense, 512), nn.ReLU(),
            nn.Linear(512, 256), nn.ReLU(),
            nn.Linear(256, 1),
        )

    def forward(self, cats, dense):
        e = [t(cats[:, i]) for i, t in enumerate(self.tables)]
        return self.mlp(torch.cat(e + [dense], 1)).squeeze(1)


class RunningAUC:
    """ROC AUC of everything seen in this epoch."""

    def __init__(self):
        self.scores = []
        self.labels = []

    def update(self, logits, y):
        self.scores.append(torch.sigmoid(logits.detach()))
        self.labels.append(y)

    def compute(self):
        s = torch.cat(self.scores)
        y = torch.cat(self.labels)
        order = torch.argsort(s)
        y = y[order]
        rank = torch.arange(1, len(y) + 1, dtype=torch.float64)
        pos = y.sum()
        neg = len(y) - pos
        return ((rank * y).sum() - pos * (pos + 1) / 2) / (pos * neg)


def synthetic_batches(n, size, g):
    for _ in range(n):
        cats = torch.randint(0, 5000, (size, 12), generator=g)
        dense = torch.randn(size, 32, generator=g)
        y = (dense[:, 0] + 0.3 * dense[:, 1] > 0.4).float()
        yield cats, dense, y


def train(args):
    g = torch.Generator().manual_seed(0)
    model = ClickNet()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.02)
    auc = RunningAUC()
    t0 = time.time()
    for step, (cats, dense, y) in enumerate(synthetic_batches(args.steps, args.batch, g)):
        opt.zero_grad()
        logits = model(cats, dense)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        loss.backward()
        opt.step()
        auc.update(logits, y)
        current = auc.compute()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} auc {current:.4f}")
    print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--batch", type=int, default=4096)
    train(p.parse_args())
