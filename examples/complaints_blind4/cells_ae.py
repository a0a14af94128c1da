"""Autoencoder on a single-cell expression matrix."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
GENES, CELLS, LATENT = 1200, 50_000, 16


class CountAE(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(GENES, hidden), nn.ReLU(), nn.Linear(hidden, LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, GENES))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class ExpressionMatrix:
    def __init__(self):
        rate = torch.rand(GENES, 1) * 3
        self.counts = torch.rand(GENES, CELLS).mul_(rate).floor_()
        self.size_factor = self.counts.sum(0) / 1e3
        self.counts.div_(self.size_factor).log1p_()

    def minibatches(self, batch_size):
        order = torch.randperm(CELLS)
        for i in range(0, CELLS - batch_size + 1, batch_size):
            idx = order[i:i + batch_size]
            yield self.counts[:, idx].t()


def fit(data, epochs=2, batch_size=256):
    model = CountAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(epochs):
        start, steps = time.time(), 0
        for x in data.minibatches(batch_size):
            loss = F.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        took = time.time() - start
        print(f"epoch {epoch} mse {loss.item():.4f} {took:.2f}s {took / steps * 1e3:.1f} ms/batch")


if __name__ == "__main__":
    fit(ExpressionMatrix())
