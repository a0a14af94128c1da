"""Autoencoder of single cell gene expression."""
import time

import torch
from torch import nn

GENES, CELLS, BATCH = 1000, 60_000, 256


def load_expression():
    """Genes in rows and cells in columns, as the .mtx file has them."""
    g = torch.Generator().manual_seed(0)
    counts = torch.empty(GENES, CELLS)
    for gene in range(GENES):
        counts[gene].exponential_(2.0, generator=g)
    counts.log1p_()
    return counts


class CellBatches:
    def __init__(self, expression, batch_size):
        self.expression = expression
        self.cells = expression.size(1)
        self.batch_size = batch_size

    def __len__(self):
        return self.cells // self.batch_size

    def __iter__(self):
        order = torch.randperm(self.cells)
        for i in range(len(self)):
            picked = order[i * self.batch_size:(i + 1) * self.batch_size]
            yield self.expression[:, picked].t()


class AutoEncoder(nn.Module):
    def __init__(self, hidden=64, latent=10):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(GENES, hidden), nn.ReLU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, GENES))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    torch.manual_seed(0)
    expression = load_expression()
    batches = CellBatches(expression, BATCH)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(2):
        total = 0.0
        for x in batches:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch} mse {total / len(batches):.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
