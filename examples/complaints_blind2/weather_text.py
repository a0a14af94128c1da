# fmt: off
import math
import torch
import torch.nn as nn


def positions(n, dim):
    table = torch.zeros(n, dim)
    rows = []
    for p in range(n):
        rows.append([math.sin(p / 10000 ** (2 * (i // 2) / dim)) if i % 2 == 0 else math.cos(p / 10000 ** (2 * (i // 2) / dim)) for i in range(dim)])
    return table + torch.tensor(rows)


class Reports(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.emb = nn.Embedding(500, dim)
        self.block = nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True, dropout=0.0)
        self.out = nn.Linear(dim, 10)

    def forward(self, x):
        h = self.emb(x) + positions(x.shape[1], 64)
        return self.out(self.block(h).mean(1))


def main():
    torch.manual_seed(0)
    model = Reports()
    opt = torch.optim.Adam(model.parameters())
    for step in range(90):
        x, y = torch.randint(0, 500, (8, 128)), torch.randint(0, 10, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
