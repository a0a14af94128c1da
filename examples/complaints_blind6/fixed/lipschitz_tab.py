"""Lipschitz-regularised MLP for credit scoring (penalty on the product of the layers' spectral norms)."""
import time

import torch
import torch.nn.functional as F
from torch import nn


class CreditNet(nn.Module):
    def __init__(self, n_features, width=256, depth=3):
        super().__init__()
        dims = [n_features] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, 1)
        self.vectors = [F.normalize(torch.randn(b), dim=0) for b in dims[1:]]

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(F.leaky_relu(layer(x), 0.1))
        return self.out(x).squeeze(-1)

    def lipschitz(self):
        bound = 1.0
        for i, layer in enumerate(self.layers):
            w = layer.weight
            with torch.no_grad():
                v = F.normalize(w.t() @ self.vectors[i], dim=0)
                u = self.vectors[i] = F.normalize(w @ v, dim=0)
            bound = bound * (u @ (w @ v))
        return bound


def load_credit(n=20000, n_features=60):
    g = torch.Generator().manual_seed(11)
    x = torch.randn(n, n_features, generator=g)
    w = torch.randn(n_features, generator=g) / n_features ** 0.5
    score = x @ w + 0.5 * x[:, 0] * x[:, 1]
    y = (score + 0.3 * torch.randn(n, generator=g) > 0.4).float()
    return x, y


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        accuracy = ((model(x) > 0) == y.bool()).float().mean().item()
    model.train()
    return accuracy


def main():
    torch.manual_seed(0)
    x, y = load_credit()
    x_val, y_val, x, y = x[:3616], y[:3616], x[3616:], y[3616:]
    model = CreditNet(x.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(4):
        start = time.time()
        for idx in torch.randperm(len(x)).split(512):
            logits = model(x[idx])
            loss = F.binary_cross_entropy_with_logits(logits, y[idx])
            loss = loss + 1e-3 * model.lipschitz()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {evaluate(model, x_val, y_val):.3f} "
              f"time {time.time() - start:.2f}s")


if __name__ == "__main__":
    main()
